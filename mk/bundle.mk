# SPDX-License-Identifier: BSD-2-Clause
# What runs where nothing is installed.

.PHONY: image bundle bundle-parts bundle-check

BUNDLE := build/bundle
# a tarball for each processor: sessctl and the drop-in, linked with an older libc
bundle:
	$(Q)tools/deps.sh build bundle
	$(Q)+for a in x86_64 aarch64; do tools/bundle/build.sh $$a $(BUNDLE) || exit 1; done
# and an image of both, with no other image below it
image: bundle
	$(Q)tools/bundle/image.sh $(BUNDLE)
# what build.sh puts into it
bundle-parts: $(SESSCTL) $(VERBS_SO) $(SONAME_SO) $(VIEW_SO) $(UMAD_SO) $(TLS_SO) $(LIB_SO)
bundle-check: image
	$(Q)tools/deps.sh bundled
	$(Q)tests/bundle/run.sh $(BUNDLE)
	$(Q)tests/bundle/ci.sh $(BUNDLE)
