# Words that several pages have.

repository = Repository
workflow = Workflow
environment = Environment
events = Events
added = Added
remove = Remove
part_of = { $part } of { $whole }
profile = Profile
save = Save
tier = Tier
role = Role
sessions = Sessions
last_used = Last used
unknown = unknown
function = Function
object_id = Object id
when = When
object = Object
signed_in_with = Signed in with
address = Address
live = Live
promote_to = Promote to { $next }
roll_back = Roll back
default_branch = default branch
backend = Backend
make_a_backend = Make a backend
market_server = Market server
checkouts = Checkouts
subscriptions = Subscriptions
tokens_and_publishers = Deploy tokens and trusted publishers
app_id = App id
ios_bundle_identifier = iOS bundle identifier
android_package_name = Android package name
service = Service
app = App
channel = Channel
actions = Actions
change = Change
enter_to_delete = Enter { $name } to delete it.
release = Release { $name }
download = Download
platform = Platform
version = Version
size_label = Size
nobody = nobody
commit = Commit
run = Run
build = Build
made = Made
file = File
state = State
branch_tag_or_commit = Branch, tag or commit
none = none
triggered = Triggered
ended = Ended
artifact = Artifact
last_check = Last check
changed = Changed
not_known_yet = not known yet
plan = Plan
subscription = Subscription
created = Created
expires = Expires
next_attempt = Next attempt
show = Show
nothing_found = Nothing found.
there_more_search = There is more to search.
amount = Amount
currency = Currency
kind = Kind
never = never
status = Status
image = Image
action = Action
address_of_the_repository = Address of the repository
without_one_default_branch = Without one, the default branch.
path_of_the_dockerfile = Path of the Dockerfile
without_one_dockerfile = Without one, Dockerfile.
parameters = Parameters
result = Result
new_project = New project
since = Since
instances = Instances
of = of { $name }
settings = Settings
description = Description
none_yet = none yet
restart = Restart
stop = Stop
users = Users
all = All
services = Services
restarts = Restarts
backends = Backends
market_servers = Market servers
all_of_them = all
organization = Organization
members = Members
personal = personal
project = Project
details = Details
same_as_command = The command that does the same
parts_of_the_list = Parts of the list
back_to_the_newest = Back to the newest
show_older_ones = Show older ones
filter = Filter
copy = Copy
targets = Targets
add_the = add { $missing }
to_a_share_first = To a share of the users first
first_share_in_percent = First share of users, in percent
first_share_hint = At Google Play and the App Store. Without one, everybody.
drop_a_signed_file = Drop a signed file here
signed_file_hint = An .apk, .aab or .ipa. Its signature and its bytes are verified.
upload_the_file = Upload the file
upload = Upload
the_store_says = The store says
secret = Secret
checked = Checked
i_have_stored_it = I have stored it
needs_a_key = needs a key:
nobody_brings_it_back = Nobody can bring it back.

## What scripts tell

copied = Copied
table = Table
sort_the_rows = Sort the rows on this page
results = Results
count_found = { $number } found
search_or_say = Search, or say what you want to do
sign_in_and_choose_again = Sign in again, and choose the file again.
reading_the_file = Reading the file
sending_percent = Sending { $share } %
trying_again = The connection broke; trying again
verifying = Verifying
stopped_choose_again = Stopped. Choose the file again to go on.
failed_choose_again = The upload failed. Choose the file again to go on.

## Times

just_now = just now
in_a_moment = in a moment
minutes_ago = { $count ->
    [one] { $count } minute ago
   *[other] { $count } minutes ago
}
in_minutes = { $count ->
    [one] in { $count } minute
   *[other] in { $count } minutes
}
hours_ago = { $count ->
    [one] { $count } hour ago
   *[other] { $count } hours ago
}
in_hours = { $count ->
    [one] in { $count } hour
   *[other] in { $count } hours
}
days_ago = { $count ->
    [one] { $count } day ago
   *[other] { $count } days ago
}
in_days = { $count ->
    [one] in { $count } day
   *[other] in { $count } days
}
months_ago = { $count ->
    [one] { $count } month ago
   *[other] { $count } months ago
}
in_months = { $count ->
    [one] in { $count } month
   *[other] in { $count } months
}
overview = Overview
releases = Releases
deployments = Deployments
image_builds = Image builds
images = Images
dashboard = Dashboard
command_line = Command line
local_publish = Local publish
external_ci = External CI
manual_upload = Manual upload
origin_not_proven = not proven
origin_by_ci_run = by a CI run that proved itself
origin_attested = attested by its CI run
install_link = Install link
managed = Managed
artifact_only = Artifact-only
not_classified_yet = Not classified yet

## States and kinds

# The name on the wire chooses the words. Elsewhere, English says the name itself, in small letters.
name_of_value = { $wire ->
    [instanceMemory] memory of instances
    [instanceDisk] disk of instances
    [instanceCpus] processors of instances
    [buildMinutes] build minutes of this month
    [imageBytes] size of images
    [logBytes] size of logs
    [artifactBytes] size of artifacts
    [backupBytes] size of backups
    [mails] mails of the last hour
   *[other] { $words }
}
shown_of_many = { $number } of 1,000 or more
nothing_in_this_part = Nothing in this part
shown_in_this_part = { $number } in this part
quota = Quota
used = Used
at_the_most = At the most
unlimited = unlimited
