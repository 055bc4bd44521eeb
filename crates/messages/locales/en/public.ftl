# The pages that people see who have no account, or are about to sign in. `{ $name }` is a placeholder: keep
# it. A language that has a file has all its messages with the same placeholders; the build compares them. A
# placeholder `$count` is a number, by which the words are chosen.

## Every page

skip_to_content = Skip to the content
email = E-mail
password = Password
sign_in = Sign in
make_account = Make an account

## The install page of a release

released_on = Released on { $date }
install_on_ios = Install on iPhone or iPad
install_on_android = Install on Android
download_bundle = Download the app bundle
kibibytes = { $number } KiB
mebibytes = { $number } MiB
taken_back = This release was taken back and cannot be installed any more.
ios_needs_https = iOS installs only from an https address; this service has none.
open_on_phone = Open this page on your phone
only_these_devices = { $count ->
    [one] Installs on { $number } registered device
   *[other] Installs on { $number } registered devices
}
device_ends = The last characters of their identifiers (UDID). If yours is missing, send it to the people who make the app.
only_from_store = This file is for the App Store. Phones refuse it here: install the app through TestFlight or the App Store.
any_device_of_company = Installs on the devices of the company that signed it.
profile_ends = The app opens until { $date }; then it needs a new release.
profile_ended = The app cannot be opened since { $date }: its profile has ended. Ask for a new release.

## The page after a payment

paid = Thank you
paid_text = Your payment of { $total } arrived.
pending = One moment
pending_text = Your payment of { $total } is not confirmed yet. This page looks again by itself.
not_paid = Not paid
failed_text = The payment of { $total } did not succeed.
abandoned_text = { $total } was not paid.
your_order = Your order:
reference = Reference { $reference }

## Signing in

needs_https = Browsers keep a session only over https. Set SVC_DASHBOARD_URL to an address with https.
no_administrator = This server has no administrator yet. The link that makes the first account stands in its log.
has_administrator = This server has an administrator. Sign in, or make an account.
session_over = Your session is over. Sign in to go on.
session_over_kept = Your session is over. What you entered is kept: sign in, and send it again.
signed_in_again = You are signed in again
kept_without_secrets = What you entered before was kept. Secrets were not: you may have to enter them again.
send_it = Send it
leave_it = Leave it, and go to the start
forgot = I forgot my password

## A new account

new_account = New account
name = Name
name_hint = Others see it. Without one, it is the first part of the e-mail.
password_hint = At least 8 characters.
make_the_account = Make the account
has_account = I have an account
registration_closed = Registration is closed on this service. Its operator makes accounts: ask them for one.
token_of_invitation = Token of the invitation
token_of_invitation_hint = From the mail with your invitation. Register with the e-mail that it was sent to.
first_administrator = First administrator
first_administrator_does = The first administrator of this server sees and changes everything. This link makes one, once.
become_administrator = Become the administrator

## A forgotten password

forgotten_password = Forgotten password
forgot_mail = You get a mail with a link for a new password.
forgot_no_mail = This server sends no mail. Ask for a new password here, then ask the operator for the link, which stands in the log.
send_mail = Send the mail
ask_for_password = Ask for a new password
have_token = I have a token
asked_mail = If there is an account with this e-mail, a mail with a link is on its way to it.
asked_no_mail = This server sends no mail. If there is an account with this e-mail, its operator finds the link in the log.

## A new password

new_password = New password
new_password_ends = This signs you out everywhere, and ends your deploy tokens. Trusted publishers that you added are removed, and webhooks that you made are disabled.
token_of_link = Token of the link
set_password = Set the password
password_set = The new password holds from now on. Sign in with it.

## Another e-mail

confirm_email = Confirm your e-mail
confirm_email_why = The account gets this e-mail when you confirm that you read its mail.
email_confirmed = The account has its new e-mail.

## An invitation

invitation = Invitation
join = Join an organization
join_first = Use the e-mail that the invitation was sent to. Afterwards you come back here.
join_as = An invitation is for the e-mail that it was sent to. You are signed in as:
join_now = Join

## What cannot be shown

not_found = Not found
not_allowed = Not allowed
went_wrong = Something went wrong
not_done = Not done
leads_nowhere = This link leads to nothing. Ask the people who sent it to you for a new one.
go_to_start = Go to the start
