"""The HTTPS server of the webhooks: reads AdmissionReviews, asks the rules, answers.

python src/serve.py [--cert certs/tls.crt] [--key certs/tls.key] [--port 9443]
"""

import argparse
import base64
import copy
import http.server
import importlib
import json
import pathlib
import signal
import ssl

# Every module NAME_webhook.py is served at /mutate-NAME and /validate-NAME.
RULES = {
    path.stem.removesuffix("_webhook"): importlib.import_module(path.stem)
    for path in sorted(pathlib.Path(__file__).parent.glob("*_webhook.py"))
}
# The largest review that is read.
LIMIT = 8 << 20


def review(action, rules, request):
    """Answers one request of an API server."""
    response = {"uid": request["uid"], "allowed": True}
    if action == "mutate":
        changed = copy.deepcopy(request["object"])
        rules.mutate(changed)
        if changed != request["object"]:
            patch = json.dumps([{"op": "replace", "path": "", "value": changed}]).encode()
            response.update(patchType="JSONPatch", patch=base64.b64encode(patch).decode())
    elif reason := rules.validate(request["object"], request.get("oldObject")):
        response.update(allowed=False, status={"message": reason, "code": 403})
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self):
        self.answer(200 if self.path == "/healthz" else 404, b"ok")

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        action, _, name = self.path.split("?")[0].strip("/").partition("-")
        if action not in ("mutate", "validate") or name not in RULES:
            return self.answer(404, b"there is no such webhook")
        if length > LIMIT:
            self.close_connection = True
            return self.answer(413, b"the review is too large")
        try:
            request = json.loads(self.rfile.read(length))["request"]
            answer = review(action, RULES[name], request)
        except (KeyError, TypeError, ValueError) as wrong:
            return self.answer(400, f"this is not an AdmissionReview: {wrong}".encode())
        return self.answer(200, json.dumps(answer).encode())

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    """Handshakes happen in the thread of a connection, so that a silent client holds up no other."""

    def __init__(self, address, cert, key):
        super().__init__(address, Handler)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)

    def finish_request(self, request, client_address):
        request.settimeout(10)
        with self.tls.wrap_socket(request, server_side=True) as stream:
            super().finish_request(stream, client_address)


def stop(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description="Admission webhooks")
    parser.add_argument("--cert", default="certs/tls.crt", help="the certificate in PEM")
    parser.add_argument("--key", default="certs/tls.key", help="its key in PEM")
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--bind", default="127.0.0.1")
    arguments = parser.parse_args()
    server = Server((arguments.bind, arguments.port), arguments.cert, arguments.key)
    print(f"serving on https://{arguments.bind}:{server.server_port}", flush=True)
    # Also where nothing else handles them: as the first process of a container, or in the background of a script.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
