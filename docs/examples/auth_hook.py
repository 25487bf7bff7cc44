#!/usr/bin/env python3
"""Authenticates people for plimsoll's fronts from another directory: auth_hook.py PORT SECRET_FILE"""
import hmac, http.server, json, sys, time

PORT, SECRET = int(sys.argv[1]), open(sys.argv[2]).readline().strip()
PEOPLE = {"alice": (1, b"correct horse"), "bob": (2, b"battery staple")}  # query your own directory instead
NO_SHARES = {"shares_by": {"shares": []}, "shared_with": {"shares": []}, "end_shares": {"done": None}}

def answer(kind, asked):
    if kind == "password":
        number, password = PEOPLE.get(asked["name"], (0, b""))
        if number and hmac.compare_digest(bytes.fromhex(asked["password"]), password):
            return {"answer": {"password": [{"id": number, "name": asked["name"]}, 1]}}
        return {"error": "wrong_credentials"}
    if kind == "renew":  # fronts check now and then whether an account that gave a password still exists
        found = [name for name, (number, _) in PEOPLE.items() if number == asked["account"]]
        return {"answer": {"account": {"id": asked["account"], "name": found[0]}}} if found else {"error": "no_session"}
    return {"answer": NO_SHARES[kind]} if kind in NO_SHARES else {"error": "not_allowed"}

class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_front = hmac.compare_digest(self.headers.get("Authorization", ""), f"Bearer {SECRET}")
        if is_front and self.path == "/api/auth/changes":
            time.sleep(0.5 if asked["known"] else 0)  # nothing changes here
            changed = [] if asked["known"] else ["everything"]
            told = {"answer": {"known": {"server": "hook", "number": 1}, "changed": changed}}
        else:
            told = answer(*next(iter(asked.items()))) if is_front else {}
        body = json.dumps(told).encode()
        self.send_response(200 if is_front else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Hook)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
