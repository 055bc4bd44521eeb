"""Serves the git repositories of a folder over HTTP, by git's own CGI program: server.py FOLDER.

Prints the port that it listens on.
"""

import http.server
import os
import subprocess
import sys


class Repositories(http.server.BaseHTTPRequestHandler):
    def serve(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": sys.argv[1],
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        program = ["git", "-c", "safe.directory=*", "http-backend"]
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

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Repositories)
print(server.server_port, flush=True)
server.serve_forever()
