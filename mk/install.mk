# SPDX-License-Identifier: BSD-2-Clause
# make install and make uninstall: PREFIX, LIBDIR, PYTHONDIR, DESTDIR.  Spaces and umask do not matter.

.PHONY: install uninstall

install: all man
	umask 022 && install -d '$(DESTDIR)$(PREFIX)'/include/ddpsess '$(DESTDIR)$(LIBDIR)'/pkgconfig \
		'$(DESTDIR)$(LIBDIR)'/ddpsess/verbs '$(DESTDIR)$(PREFIX)'/bin \
		'$(DESTDIR)$(PREFIX)'/share/man/man1 '$(DESTDIR)$(PREFIX)'/share/man/man5 \
		'$(DESTDIR)$(PREFIX)'/share/man/man3 '$(DESTDIR)$(PREFIX)'/share/man/man7 \
		'$(DESTDIR)$(PREFIX)'/share/bash-completion/completions \
		'$(DESTDIR)$(PREFIX)'/share/ddpsess/wireshark '$(DESTDIR)$(LIBDIR)'/cmake/ddpsess \
		'$(DESTDIR)$(PYTHONDIR)'/ddpsess '$(DESTDIR)$(PREFIX)'/share/ddpsess/profiles
	install -m 644 docs/sessctl.schema.json '$(DESTDIR)$(PREFIX)'/share/ddpsess
	install -m 644 profiles/*.profile '$(DESTDIR)$(PREFIX)'/share/ddpsess/profiles
	install -m 644 include/ddpsess/*.h '$(DESTDIR)$(PREFIX)'/include/ddpsess
	install -m 644 $(LIB_A) $(IPOIB_A) $(CONFORM_A) '$(DESTDIR)$(LIBDIR)'
	umask 022; for l in libddpsess libddpsess-ipoib libddpsess-conform; do \
		install -m 755 $(B)/$$l.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)'/$$l.so.$(VERSION) && \
		ln -sf $$l.so.$(VERSION) '$(DESTDIR)$(LIBDIR)'/$$l.so.$(SOVERSION) && \
		ln -sf $$l.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)'/$$l.so && \
		sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' \
			src/$$l.pc.in >'$(DESTDIR)$(LIBDIR)'/pkgconfig/$$l.pc || exit 1; done
	install -m 755 $(VERBS_SO) '$(DESTDIR)$(LIBDIR)'
	install -m 755 $(SONAME_SO) '$(DESTDIR)$(LIBDIR)'/ddpsess/verbs
	install -m 755 $(VIEW_SO) $(UMAD_SO) $(TLS_SO) '$(DESTDIR)$(LIBDIR)'/ddpsess
	install -m 755 $(SESSCTL) '$(DESTDIR)$(PREFIX)'/bin
	install -m 644 tools/sessctl/completion.bash \
		'$(DESTDIR)$(PREFIX)'/share/bash-completion/completions/sessctl
	umask 022 && install -d '$(DESTDIR)$(PREFIX)'/share/zsh/vendor-completions \
		'$(DESTDIR)$(PREFIX)'/share/fish/vendor_completions.d '$(DESTDIR)$(PREFIX)'/lib/systemd/system
	install -m 644 tools/sessctl/sessctl-listen@.service '$(DESTDIR)$(PREFIX)'/lib/systemd/system
	install -m 644 tools/sessctl/completion.zsh \
		'$(DESTDIR)$(PREFIX)'/share/zsh/vendor-completions/_sessctl
	install -m 644 tools/sessctl/completion.fish \
		'$(DESTDIR)$(PREFIX)'/share/fish/vendor_completions.d/sessctl.fish
	umask 022; for f in ddpsess-config.cmake ddpsess-config-version.cmake; do \
		sed -e 's|@VERSION@|$(VERSION)|; s|@SOVERSION@|$(SOVERSION)|' -e "s|@INCLUDE@|$$(realpath \
			-ms --relative-to='$(LIBDIR)'/cmake/ddpsess '$(PREFIX)'/include)|" src/$$f.in \
			>'$(DESTDIR)$(LIBDIR)'/cmake/ddpsess/$$f || exit 1; done
	install -m 644 python/ddpsess/*.py python/ddpsess/py.typed '$(DESTDIR)$(PYTHONDIR)'/ddpsess
	install -m 644 tools/wireshark/ddpsess.lua '$(DESTDIR)$(PREFIX)'/share/ddpsess/wireshark
	for m in $(MAN) $(B)/man/ddps_*.3 $(B)/man/ddpsess_*.3; do install -m 644 $$m \
		'$(DESTDIR)$(PREFIX)'/share/man/man$${m##*.}/ || exit 1; done
	for m in get:put top:stat check-keys:keys; do ln -sf "sessctl-$${m#*:}.1" \
		'$(DESTDIR)$(PREFIX)'/share/man/man1/"sessctl-$${m%:*}.1" || exit 1; done

uninstall:
	rm -rf '$(DESTDIR)$(PREFIX)'/include/ddpsess '$(DESTDIR)$(LIBDIR)'/ddpsess \
		'$(DESTDIR)$(PREFIX)'/share/ddpsess '$(DESTDIR)$(LIBDIR)'/cmake/ddpsess \
		'$(DESTDIR)$(PYTHONDIR)'/ddpsess
	rm -f '$(DESTDIR)$(LIBDIR)'/libddpsess.* '$(DESTDIR)$(LIBDIR)'/libddpsess-ipoib.* \
		'$(DESTDIR)$(LIBDIR)'/libddpsess-conform.* \
		'$(DESTDIR)$(LIBDIR)'/libddpsess-verbs.so \
		'$(DESTDIR)$(LIBDIR)'/pkgconfig/libddpsess.pc \
		'$(DESTDIR)$(LIBDIR)'/pkgconfig/libddpsess-ipoib.pc \
		'$(DESTDIR)$(LIBDIR)'/pkgconfig/libddpsess-conform.pc \
		'$(DESTDIR)$(PREFIX)'/bin/sessctl \
		'$(DESTDIR)$(PREFIX)'/share/bash-completion/completions/sessctl \
		'$(DESTDIR)$(PREFIX)'/share/zsh/vendor-completions/_sessctl \
		'$(DESTDIR)$(PREFIX)'/share/fish/vendor_completions.d/sessctl.fish \
		'$(DESTDIR)$(PREFIX)'/lib/systemd/system/sessctl-listen@.service \
		$(foreach m,$(MAN),'$(DESTDIR)$(PREFIX)'/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m))) \
		$(foreach m,get top check-keys,'$(DESTDIR)$(PREFIX)'/share/man/man1/sessctl-$(m).1) \
		'$(DESTDIR)$(PREFIX)'/share/man/man3/ddps_*.3 '$(DESTDIR)$(PREFIX)'/share/man/man3/ddpsess_*.3
