"""Two HTTP clients of Python's at a plimsoll server: requests, and http.client of the standard library.

Each uploads, downloads, lists and deletes; whatever is not as it should be ends the script with an error.
"""

import base64
import hashlib
import http.client
import json
import sys
from urllib.parse import quote, urlsplit

import requests

url = sys.argv[1]
noise = hashlib.shake_256(b"plimsoll").digest(3_000_000)
who = {"name": "carol", "password": "correct horse"}


def pieces(bytes_):
    for at in range(0, len(bytes_), 123_457):
        yield bytes_[at : at + 123_457]


def expect(answer, status):
    assert answer.status_code == status, (answer.request.method, answer.url, answer.status_code, answer.text)
    return answer


def with_requests():
    expect(requests.post(f"{url}/api/accounts", json=who), 201)
    session = requests.Session()
    token = expect(session.post(f"{url}/api/sessions", json=who), 201).json()["token"]
    session.headers["Authorization"] = f"Bearer {token}"
    file = f"{url}/files/" + quote("grüße & 日本.bin")
    # A generator: requests sends it chunked, since it does not know how long it is.
    made = expect(session.put(file, data=pieces(noise)), 201)
    got = expect(session.get(file), 200)
    assert got.content == noise and got.headers["ETag"] == made.headers["ETag"]
    part = expect(session.get(file, headers={"Range": "bytes=1000000-1999999"}), 206)
    assert part.content == noise[1_000_000:2_000_000]
    expect(session.get(file, headers={"If-None-Match": made.headers["ETag"]}), 304)
    expect(session.put(file, data=b"x", headers={"If-Match": '"another"'}), 412)
    wrong = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    expect(session.put(file, data=b"x", headers={"Repr-Digest": f"sha-256=:{wrong}:"}), 422)
    assert session.get(file).content == noise
    names = [entry["name"] for entry in expect(session.get(f"{url}/files/?format=json"), 200).json()["entries"]]
    assert names == ["grüße & 日本.bin"], names
    refused = expect(session.get(f"{url}/files/none"), 404)
    assert refused.headers["Content-Type"].startswith("application/problem+json") and refused.json()["detail"]
    expect(requests.get(file, auth=(who["name"], who["password"])), 200)
    expect(requests.get(file, auth=(who["name"], "wrong")), 401)
    expect(session.delete(file), 204)
    expect(session.get(file), 404)
    return session


def with_http_client():
    server = urlsplit(url).netloc
    password = base64.b64encode(f"{who['name']}:{who['password']}".encode()).decode()
    fields = {"Authorization": f"Basic {password}"}
    connection = http.client.HTTPConnection(server, timeout=30)

    def ask(method, path, status, body=None, more=(), chunked=False):
        connection.request(method, path, body, {**fields, **dict(more)}, encode_chunked=chunked)
        answer = connection.getresponse()
        came = answer.read()
        assert answer.status == status, (method, path, answer.status, came)
        return came

    ask("MKCOL", "/files/folder", 201)
    ask("PUT", "/files/folder/file", 201, pieces(noise), {"Transfer-Encoding": "chunked"}, True)
    ask("PUT", "/files/folder/empty", 201, b"", {"Content-Length": "0"})
    assert ask("GET", "/files/folder/file", 200) == noise
    assert ask("HEAD", "/files/folder/file", 200) == b""
    ask("COPY", "/files/folder", 201, more={"Destination": "/files/copy"})
    ask("MOVE", "/files/folder/file", 204, more={"Destination": "/files/copy/empty"})
    assert ask("GET", "/files/copy/empty", 200) == noise
    listed = json.loads(ask("GET", "/files/", 200, more={"Accept": "application/json"}))
    assert [entry["name"] for entry in listed["entries"]] == ["copy", "folder"], listed
    ask("DELETE", "/files/copy", 204)
    ask("DELETE", "/files/folder", 204)
    ask("DELETE", "/api/trash", 204)
    usage = json.loads(ask("GET", "/api/whoami", 200))["usage"]
    assert usage == {"bytes": 0, "files": 0, "folders": 0}, usage


session = with_requests()
with_http_client()
expect(session.delete(f"{url}/api/sessions/current"), 204)
expect(session.get(f"{url}/files/"), 401)
print("done")
