//! The App Store and TestFlight against a fake of App Store Connect, which keeps Apple's rules behind
//! a proxy that checks every request and every answer against Apple's description.

mod crashes;
mod lives;
mod plans;
mod refusals;
mod scene;
