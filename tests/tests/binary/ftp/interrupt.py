"""Uploads a file over FTP and breaks the upload off when the server has all that was sent."""

import ftplib
import re
import socket
import struct
import sys
import time

host, port, name, password, local, remote = sys.argv[1:]
ftp = ftplib.FTP()
ftp.connect(host, int(port), timeout=30)
ftp.login(name, password)
ftp.voidcmd("TYPE I")
data = ftp.transfercmd(f"STOR {remote}")
with open(local, "rb") as file:
    sent = file.read()
data.sendall(sent)
while True:
    # STAT is answered during a transfer: "213 N bytes so far."
    ftp.putcmd("STAT")
    if int(re.match(r"213 (\d+) ", ftp.getresp())[1]) == len(sent):
        break
    time.sleep(0.01)
# A reset, and no end: what was sent is not all.
data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
data.close()
try:
    ftp.getresp()
    raise SystemExit("the upload was not broken off")
except ftplib.error_temp as refused:
    assert str(refused).startswith("426"), refused
ftp.quit()
