# SPDX-License-Identifier: BSD-2-Clause
# Whether more pairs of a row would say the same: three or more agree within a twentieth; or within a quarter, all of them
# on one side of the target and a tenth away from it.  Status 0: yes.
# usage: awk -v target=TARGET -v unit=UNIT -f settled.awk	a line for each pair: OURS THEIRS
$1 <= 0 || $2 <= 0 {
	failed = 1
	exit
}
{
	# of memory, time and switches less is better
	ratio = unit ~ /^(B|s|s.M|each)$/ ? $2 / $1 : $1 / $2
	if (!pairs++ || ratio < low)
		low = ratio
	if (ratio > high)
		high = ratio
}
END {
	if (failed || pairs < 3)
		exit 1
	if (high <= low * 1.05)
		exit 0
	exit !(target > 0 && high <= low * 1.25 && (low > target * 1.1 || high < target / 1.1))
}
