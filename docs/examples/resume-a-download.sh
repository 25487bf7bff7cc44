#!/bin/sh
# Downloads a file. After an interruption, it resumes.
#
#   sh resume-a-download.sh http://127.0.0.1:8080/examples/load-line.txt
#
# Press Ctrl-C in the middle of a large file, or stop the server for a while. The received part stays in the
# current folder. Run the same line again: only the rest is downloaded.
set -eu

url=${1:?"say what to download: sh $0 URL"}

# -C -        finds the size of the local part, and requests the bytes after it ("Range: bytes=N-")
# -O          keeps the file's name
# --retry ... tries again after a pause if the server does not respond or the connection breaks
#
# curl requests the rest without If-Range. If the file on the server may have changed, delete the local part first.
exec curl -C - -O --retry 10 --retry-delay 2 --retry-connrefused "$url"
