# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# A new Debian 12 in a folder, from the mirror that apt has here.

# root_for DIRECTORY GROUP: $root, which is made with the packages of that group of tools/deps.sh, and
# $sources for mmdebstrap
# shellcheck disable=SC2034 # the scripts use them
root_for() {
	[ "$(id -u)" = 0 ] || { echo "${0##*/}: only root can make a root folder" >&2; exit 2; }
	tools/deps.sh "$2" || exit
	mkdir -p "$1"
	root=$(realpath "$1")
	# shellcheck disable=SC2016 # apt expands it
	sources=$(apt-get indextargets --format \
		'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' \
		'Label: Debian' 'Codename: bookworm' | sort -u)
	[ -n "$sources" ] || { echo "${0##*/}: apt knows no mirror of Debian 12 here" >&2; exit 2; }
}
