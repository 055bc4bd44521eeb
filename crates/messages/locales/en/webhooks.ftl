# Webhooks and their deliveries.

delivery_of = Delivery of { $event }
deliver_again = Deliver again
delivery_id = Delivery id
header_webhook_id = Header webhook-id
repeats = Repeats
attempts = Attempts
first_attempt_is_under_way = The first attempt is under way. Load the page again to see its outcome.
took = Took
answer = Answer
ms = { $duration_ms } ms
payload = Payload
send_a_test = Send a test
failing_since = Failing since
count_types = { $count ->
    [one] { $count } type
   *[other] { $count } types
}
webhook_id = Webhook id
deliveries = Deliveries
no_deliveries = No deliveries in the last 30 days. Send a test to see whether the receiver answers.
event = Event
last_answer = Last answer
change_the_webhook = Change the webhook
send_events = Send events
rotating_the_secret = A new secret replaces the present one. For 24 hours, requests carry signatures with both.
rotate_the_secret = Rotate the secret
after_the_rotation = After 24 hours, receivers that know only the present secret verify no request.
delete_the_webhook = Delete the webhook
deleting_a_webhook = This deletes its deliveries, too. Nobody can bring them back.
address_of_the_webhook = Address of the webhook
without_choice_all_events = Without a choice, it gets all of them.
choose_events = Choose events
secret_of_the_webhook = Secret of the webhook
webhooks_of = Webhooks of { $name }
no_webhooks_yet = No webhooks yet. A webhook gets the events of this organization as signed HTTP requests. Make the first one.
new_webhook = New webhook
webhook_address_hint = Starts with https:// and is on the public internet, unless an operator allows its host.
make_the_webhook = Make the webhook
what_a_webhook_is = A webhook tells an address of yours what happens in an organization. Owners and admins of an organization manage its webhooks.
webhooks = Webhooks
secret_is_shown_once = This page shows the secret once. Give it to the receiver now: it verifies the signatures with it.
previous_secret_until = Until { $when }, requests carry a signature with the previous secret, too.
webhook = Webhook
delivery = Delivery
the_webhook_is_changed = The webhook is changed.
test_is_on_its_way = The test is on its way.
the_webhook_is_deleted = The webhook is deleted.
event_is_on_its_way = The event is on its way again.
disabled = disabled
failing = failing
enabled = enabled
