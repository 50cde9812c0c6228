# SPDX-License-Identifier: BSD-2-Clause
# What make lint does: clang-format, clang's warnings, clang-tidy, cppcheck, shellcheck.  The two in
# the middle take minutes: build/lint has a stamp for each file that passed them, and a file is looked
# at again once it, a header of it, what is asked or a tool has changed.

L	 := build/lint
# the proofs are for Frama-C, with its own headers; two files include what their build makes first
MADE	 := tools/report/rules.c tools/bundle/crc32c.c
ALL	 := $(filter-out $(MADE),$(shell git ls-files '*.c' ':!tests/proof'))
# but for the records of releases, which stay as they were
HEADERS	 := $(shell git ls-files '*.h' ':!tests/abi')
OURS	 := $(filter-out $(MADE),$(shell git ls-files 'src/*.c' 'tools/*.c' 'examples/*.c'))
SCRIPTS	 := $(shell git ls-files '*.sh' '*.bash' .ci/run)
CPPFLAGS := -D_GNU_SOURCE -Iinclude -Isrc -Itools -Itests \
	$(addprefix -isystem,$(shell mpicc --showme:incdirs))
CFLAGS	 := -std=gnu11
WARN	 := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror
# lists of <sys/queue.h>, as cppcheck can follow them
LOOP	  = while ((var = (head)->first))
QUEUES	  = $(foreach q,LIST SLIST TAILQ STAILQ,'-D$q_HEAD(name,type)=struct type *' \
	'-D$q_FOREACH(var,head,field)=$(LOOP)')
# and jansson's
JSON	  = '-Djson_array_foreach(array,i,v)=while (i = 0, (v = json_array_get(array, i)))'

.PHONY: lint format names warnings tidy cppcheck shellcheck
.DELETE_ON_ERROR:
.SECONDARY:
lint: format names cppcheck shellcheck warnings tidy

format:
	@clang-format --dry-run -Werror $(ALL) $(HEADERS)
	@echo "ok   clang-format"
names:
	@tests/names.sh
warnings: $(ALL:%=$L/%.warn)
	@echo "ok   clang warnings"
tidy: $(OURS:%=$L/%.tidy)
	@echo "ok   clang-tidy"
cppcheck:
	@cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		-D_GNU_SOURCE $(QUEUES) $(JSON) -Iinclude -Isrc -Itools src tools examples
	@echo "ok   cppcheck"
shellcheck:
	@shellcheck $(SCRIPTS)
	@echo "ok   shellcheck"

# The tools and what is asked of them: written anew only if it is something else.
ASKED := $L/asked
$(shell mkdir -p $L; new=$(ASKED).$$$$; \
	{ clang --version; clang-tidy --version; cat mk/lint.mk .clang-tidy; } >$$new; \
	cmp -s $$new $(ASKED) && rm $$new || mv $$new $(ASKED))

$L/%.warn: % $(ASKED)
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) $(CFLAGS) $(WARN) -fsyntax-only -MMD -MP -MT $@ -MF $@.d $<
	@touch $@
# One file a run: with several, version 14 takes every va_list for uninitialised.
$L/%.tidy: $L/%.warn
	@clang-tidy --quiet --warnings-as-errors='*' $* -- $(CPPFLAGS) $(CFLAGS) 2>$@.err || \
		{ grep -v 'warnings\? generated' $@.err; false; }
	@rm -f $@.err
	@touch $@

-include $(ALL:%=$L/%.warn.d)
