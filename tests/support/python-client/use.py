"""Uses the client that was generated: an account, a project, an app, a list, and a refusal."""

import sys

from svc_client import Client
from svc_client.api.apps import create_app, get_app, list_apps
from svc_client.api.authentication import register_user
from svc_client.api.projects import svc_create_project
from svc_client.models import (
    CreateAppBody,
    Failure,
    GetAppBody,
    ListAppsBody,
    RegisterUserBody,
    SvcCreateProjectBody,
)

base_url, application_id = sys.argv[1:]
headers = {"X-Backend-Application-Id": application_id}
svc = Client(base_url=base_url, headers=headers)

account = register_user.sync(
    client=svc, body=RegisterUserBody(email="python@example.com", password="correct horse")
).result
assert account.user.email == "python@example.com", account
svc = svc.with_headers({"X-Backend-Session-Token": account.session_token})

project = svc_create_project.sync(client=svc, body=SvcCreateProjectBody(name="Shop")).result
app = create_app.sync(client=svc, body=CreateAppBody(project_id=project.id, name="Shop app")).result
assert app.created_at.tzinfo is not None, app.created_at
listed = list_apps.sync(client=svc, body=ListAppsBody(project_id=project.id)).result
assert [each.id for each in listed.items] == [app.id] and listed.next_cursor is None, listed

missing = get_app.sync(client=svc, body=GetAppBody(app_id="app_01J9ZQ8F5W7V3T6M2K4N8R0P1S"))
assert isinstance(missing, Failure) and missing.code == 101, missing
print("used")
