#!/bin/sh
# Downloads a file and does not give up: after an interruption it goes on where it was.
#
#   sh resume-a-download.sh http://127.0.0.1:8080/examples/load-line.txt
#
# Press Ctrl-C in the middle of a large file, or stop the server for a while. What has arrived stays in the
# current folder; run the same line again and only the rest is fetched.
set -eu

url=${1:?"say what to download: sh $0 URL"}

# -C -        looks how much of the file is here, and asks for the bytes after that ("Range: bytes=N-")
# -O          keeps the file's name
# --retry ... tries again after a pause if the server does not answer or the connection breaks
#
# curl asks for the rest without If-Range: if the file on the server may have changed, delete your part first.
exec curl -C - -O --retry 10 --retry-delay 2 --retry-connrefused "$url"
