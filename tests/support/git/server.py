"""Serves the git repositories of a folder over HTTP, by git's own CGI program: server.py FOLDER [PORT].

Prints the port that it listens on. These files in the folder change what it does:
`token` holds the password that each request must send, or its beginning and `*`, `slow` delays each answer by three seconds,
`whole` makes it send all of a repository whatever is asked for,
`elsewhere` holds the address of a server to redirect to.
It counts the bytes that it sends in the file `sent`.
"""

import base64

import http.server
import os
import subprocess
import sys
import time

folder = sys.argv[1]
sent = 0


def setting(name):
    path = os.path.join(folder, name)
    return open(path).read() if os.path.exists(path) else None


class Repositories(http.server.BaseHTTPRequestHandler):
    def may_read(self):
        token = setting("token")
        sent = self.headers.get("Authorization", "Basic ").removeprefix("Basic ")
        if token is None:
            return True
        password = base64.b64decode(sent).decode().partition(":")[2]
        if token.endswith("*"):
            return password.startswith(token[:-1])
        return password == token

    def serve(self):
        if not self.may_read():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if setting("slow") is not None:
            time.sleep(3)
        if setting("elsewhere") is not None:
            self.send_response(301)
            self.send_header("Location", setting("elsewhere") + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": folder,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        filters = "true" if setting("whole") is None else "false"
        settings = ["-c", "safe.directory=*", "-c", f"uploadpack.allowFilter={filters}"]
        program = ["git", *settings, "http-backend"]
        said = subprocess.run(program, input=body, env=variables, stdout=subprocess.PIPE).stdout
        head, _, rest = said.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest)
        global sent
        sent += len(rest)
        with open(os.path.join(folder, "sent"), "w") as file:
            file.write(str(sent))

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Repositories)
print(server.server_port, flush=True)
server.serve_forever()
