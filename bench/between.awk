# SPDX-License-Identifier: BSD-2-Clause
# What stands between two marks of a page, from a file.  usage: awk -v mark=MARK -v file=FILE -f between.awk PAGE
$0 == "<!-- end of " mark " -->" { skip = 0 }
!skip
$0 == "<!-- " mark " -->" {
	print ""
	while ((getline line <file) > 0)
		print line
	skip = 1
}
