"""Python's own FTP client over TLS: PORT NAME PASSWORD CA REUSE, where REUSE is the server's ftp_tls_reuse.

Whatever is not as it should be ends the script with an error.
"""

import ftplib
import hashlib
import io
import ssl
import sys

port, name, password, ca, reuse = sys.argv[1:]
noise = hashlib.shake_256(b"plimsoll").digest(3_000_000)


class Resuming(ftplib.FTP_TLS):
    """Resumes the session of the control connection, as FTP_TLS itself does not."""

    resumes = True

    def ntransfercmd(self, cmd, rest=None):
        conn, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        session = self.sock.session if self.resumes else None
        conn = self.context.wrap_socket(conn, server_hostname=self.host, session=session)
        assert conn.session_reused == self.resumes
        return conn, size


def connect(client, version):
    context = ssl.create_default_context(cafile=ca)
    context.maximum_version = version
    ftp = client(timeout=30, context=context, encoding="utf-8")
    ftp.connect("localhost", int(port))
    ftp.login(name, password)
    assert ftp.sock.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
    ftp.prot_p()
    return ftp


def fetched(ftp, path):
    came = io.BytesIO()
    ftp.retrbinary(f"RETR {path}", came.write)
    return came.getvalue()


def go_through(ftp):
    for passive in [True, False]:
        ftp.set_pasv(passive)
        for size in [0, 1, len(noise)]:
            ftp.storbinary("STOR a", io.BytesIO(noise[:size]))
            assert fetched(ftp, "a") == noise[:size]
        assert ftp.nlst() == ["a"]
        for _ in range(20):
            ftp.storbinary("STOR a", io.BytesIO(b"again"))
    ftp.delete("a")


def refused(do, *arguments):
    try:
        do(*arguments)
    except ftplib.error_perm as error:
        assert str(error).startswith("522 "), error
        assert "did not resume the TLS session" in str(error), error
    else:
        raise AssertionError(f"{arguments} is not refused")


def refuses_strangers(ftp):
    refused(ftp.storbinary, "STOR b", io.BytesIO(noise))
    refused(ftp.nlst)


for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]:
    ftp = connect(Resuming, version)
    go_through(ftp)
    if reuse != "off":
        ftp.resumes = False
        refuses_strangers(ftp)
        ftp.resumes = True
    assert ftp.nlst() == []
    ftp.quit()
    ftp = connect(ftplib.FTP_TLS, version)
    if reuse == "require":
        refuses_strangers(ftp)
    else:
        go_through(ftp)
    ftp.quit()
print("done")
