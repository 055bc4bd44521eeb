# nx-27017, and in its buildInfo the fields without which mongorestore refuses to talk to it.
import sys

from nx_27017.handler import NeoSQLiteHandler
from nx_27017.nx_27017 import main

published = NeoSQLiteHandler._handle_server_status


def server_status(self, request_id, db):
    request_id, answer = published(self, request_id, db)
    return request_id, {"versionArray": [7, 0, 0, 0], "maxBsonObjectSize": 16 * 1024 * 1024} | answer


NeoSQLiteHandler._handle_server_status = server_status
sys.exit(main())
