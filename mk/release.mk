# SPDX-License-Identifier: BSD-2-Clause
# The tarball and the packages.

.PHONY: release dist deb rpm release-check firsthour autopkgtest

# The record of the ABI that docs/abi.md describes; after it the tag
release: lib
	$(Q)tests/abi/record.sh $(B)
	@echo 'Commit that record, make release-check, then: git tag -s v$(VERSION)'

# Of what is committed, without debian/: the same octets each time
DIST := build/dist/ddpsess-$(VERSION).tar.gz
dist:
	$(Q)mkdir -p $(dir $(DIST))
	$(Q)git archive --format=tar --prefix=ddpsess-$(VERSION)/ HEAD . ':!debian' | gzip -9n >$(DIST)
	$(Q)cd $(dir $(DIST)) && sha256sum $(notdir $(DIST)) >$(notdir $(DIST)).sha256
	@echo $(DIST)
# into build/deb and build/rpm
deb: dist
	$(Q)tools/deps.sh build deb
	$(Q)tests/release/deb.sh $(DIST) build/deb
rpm: dist
	$(Q)tools/deps.sh build rpm
	$(Q)tests/release/rpm.sh $(DIST) build/rpm
# The packages alone in a new Debian: needs root, and the mirror that apt has here
release-check: deb firsthour bundle-check
	$(Q)tests/release/check.sh build/deb build/release-check
# What a newcomer does first, in new roots of Debian 12 and 13: FLOWS=trixie/user for one, CHECK=yes with make check
firsthour:
	$(Q)tools/deps.sh release bundle
	$(Q)tests/firsthour/run.sh build/firsthour $(FLOWS)
# debian/tests, as Debian runs them; needs the same
autopkgtest: deb
	$(Q)tests/release/autopkgtest.sh build/deb build/autopkgtest
