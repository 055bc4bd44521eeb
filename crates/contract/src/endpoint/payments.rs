//! Notices of payment providers, and the page that buyers see after they paid.

use crate::checkouts::NoticeReceived;

edge_endpoints! {
    group Payments "Payments";

    /// Report a payment, a refund, a dispute or a change of a subscription.
    ///
    /// The payment provider sends it: set this address in its dashboard, with `paystack` or `stripe`
    /// as the provider. The service believes nothing in it: it looks up at the provider what the
    /// notice is about. It takes 600 notices of an app within a minute.
    "paymentNotice": Post "/api/v1/payments/{appId}/{provider}" => PaymentNotice
    {
        access: Anyone,
        reads: [
            "X-Paystack-Signature" "the HMAC-SHA512 of the body with the secret key, in hexadecimal (Paystack)",
            "Stripe-Signature" "`t=`, the time, and `v1=`, the HMAC-SHA256 of time and body with the signing secret (Stripe)",
        ],
        body: Media("application/json"),
        answers: [200 Json(NoticeReceived) "What follows from the notice is on the disk, or it is about nothing here."],
        errors: [
            Unauthenticated "the signature is missing, wrong or too old",
            NotFound "the app has no credential of the provider",
            Invalid "the body cannot be read",
            TooLarge "the body exceeds the limit",
            RateLimited "600 notices of this app came within a minute; the provider sends this one again",
            Unavailable "the provider must be asked, and does not answer; it sends the notice again",
        ],
    }

    /// The page that says whether a payment arrived, for checkouts that name no other page.
    "checkoutPage": Get "/checkouts/{reference}" => CheckoutPage
    {
        access: Anyone,
        answers: [200 Media("text/html") "The page."],
        errors: [NotFound "there is no such checkout"],
    }
}
