#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: html.sh FOLDER [HEADERS]: the public headers, or those in the folder HEADERS, as HTML in
# FOLDER/html.  Any warning is an error.
set -eu

mkdir -p "$1"
{
	cat tools/reference/Doxyfile
	echo "OUTPUT_DIRECTORY = $1"
	echo "INPUT = tools/reference/main.dox ${2:-include/ddpsess}"
} | doxygen -
echo "$1/html/index.html"
