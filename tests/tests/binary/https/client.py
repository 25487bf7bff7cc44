"""Python's ssl, http.client and urllib over TLS: PORT NAME PASSWORD CA.

Whatever is not as it should be ends the script with an error.
"""

import base64
import hashlib
import http.client
import socket
import ssl
import sys
import urllib.error
import urllib.request

port, name, password, ca = sys.argv[1:]
noise = hashlib.shake_256(b"plimsoll").digest(3_000_000)
login = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
versions = {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}


def verifying(version):
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def pieces():
    for at in range(0, len(noise), 123_457):
        yield noise[at : at + 123_457]


def transfer_on_one_connection(version):
    connection = http.client.HTTPSConnection("127.0.0.1", int(port), timeout=30, context=verifying(version))

    def ask(method, path, status, body=None, **more):
        fields = {key.replace("_", "-"): value for key, value in more.items()}
        connection.request(method, path, body, {"Authorization": login, **fields}, encode_chunked=False)
        answer = connection.getresponse()
        came = answer.read()
        assert answer.status == status, (method, path, answer.status, came)
        return came

    ask("PUT", "/files/sized", 201, noise)
    first = connection.sock
    assert (first.version(), first.selected_alpn_protocol()) == (versions[version], "http/1.1")
    # An iterable of unknown length is sent in chunks.
    connection.request("PUT", "/files/chunked", pieces(), {"Authorization": login}, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()
    answer.read()
    for path in ["/files/sized", "/files/chunked"]:
        assert ask("GET", path, 200) == noise
        assert ask("GET", path, 206, Range="bytes=1000-1999") == noise[1000:2000]
        ask("DELETE", path, 204)
    assert connection.sock is first


def session_is_resumed_and_ends_with_close_notify(version):
    context, session = verifying(version), None
    for is_first in [True, False, False]:
        plain = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
        with context.wrap_socket(
            plain, server_hostname="localhost", session=session, suppress_ragged_eofs=False
        ) as secure:
            secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            came = b""
            # Without close_notify, recv raises an SSLEOFError.
            while block := secure.recv(65536):
                came += block
            assert came.startswith(b"HTTP/1.1 200 ") and came.endswith(b"ok\n"), came
            assert secure.session_reused is not is_first, (version, is_first)
            session = secure.session


def refused(reason, url, context=None):
    try:
        urllib.request.urlopen(url, context=context, timeout=30)
    except urllib.error.URLError as error:
        assert reason in str(error), error
    else:
        raise AssertionError(f"{url} is not refused")


for version in versions:
    transfer_on_one_connection(version)
    session_is_resumed_and_ends_with_close_notify(version)
verified = ssl.create_default_context(cafile=ca)
assert urllib.request.urlopen(f"https://127.0.0.1:{port}/healthz", context=verified).read() == b"ok\n"
refused("CERTIFICATE_VERIFY_FAILED", f"https://127.0.0.1:{port}/healthz")
print("done")
