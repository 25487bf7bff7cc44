"""Python's own FTP client at a plimsoll server: HOST PORT NAME PASSWORD.

Whatever is not as it should be ends the script with an error.
"""

import ftplib
import hashlib
import io
import sys

host, port, name, password = sys.argv[1:]
noise = hashlib.shake_256(b"plimsoll").digest(3_000_000)


def refused(code, do, *arguments):
    try:
        do(*arguments)
    except ftplib.error_perm as error:
        assert str(error).startswith(code), error
    else:
        raise AssertionError(f"{arguments} is not refused")


def fetched(ftp, path, rest=None):
    came = io.BytesIO()
    ftp.retrbinary(f"RETR {path}", came.write, rest=rest)
    return came.getvalue()


def go_through(ftp):
    assert ftp.pwd() == "/"
    made = ftp.mkd('two "words"')
    assert made == '/two "words"', made
    ftp.cwd(made)
    ftp.storbinary("STOR grüße & 日本.bin", io.BytesIO(noise))
    assert fetched(ftp, "grüße & 日本.bin") == noise
    assert fetched(ftp, "grüße & 日本.bin", 1_000_000) == noise[1_000_000:]
    assert ftp.size("grüße & 日本.bin") == len(noise)
    ftp.storlines("STOR text", io.BytesIO(b"a\nb\n"))
    # After a listing, which is text: ftplib says TYPE A for it.
    ftp.nlst()
    assert ftp.size("text") == 4
    lines = []
    ftp.retrlines("RETR text", lines.append)
    assert lines == ["a", "b"], lines
    ftp.voidcmd("TYPE I")
    assert ftp.size("text") == 4
    assert sorted(ftp.nlst()) == ["grüße & 日本.bin", "text"], ftp.nlst()
    facts = dict(ftp.mlsd(facts=["type", "size"]))
    assert facts["text"] == {"type": "file", "size": "4"}, facts
    listed = []
    ftp.dir(listed.append)
    assert len(listed) == 2, listed
    ftp.storbinary("STOR text", io.BytesIO(b"c\n"), rest=4)
    assert fetched(ftp, "text") == b"a\nb\nc\n"
    ftp.storbinary("APPE text", io.BytesIO(b"d\n"))
    assert fetched(ftp, "text") == b"a\nb\nc\nd\n"
    ftp.rename("text", "/moved")
    ftp.delete("/moved")
    refused("550", ftp.delete, "/moved")
    refused("550", ftp.cwd, "none")
    refused("550", ftp.rmd, made)
    upload = ftp.transfercmd("STOR gone")
    upload.sendall(b"half")
    ftp.abort()
    upload.close()
    try:
        ftp.voidresp()
    except ftplib.all_errors:
        pass
    assert "gone" not in ftp.nlst()
    ftp.delete("grüße & 日本.bin")
    ftp.cwd("..")
    ftp.rmd(made)
    assert ftp.nlst() == []


for passive in [True, False]:
    ftp = ftplib.FTP(timeout=30)
    ftp.connect(host, int(port))
    refused("530", ftp.login, name, "wrong")
    ftp.login(name, password)
    ftp.set_pasv(passive)
    go_through(ftp)
    ftp.quit()
print("done")
