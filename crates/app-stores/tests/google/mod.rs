//! Publications in Google Play and Firebase App Distribution, in front of fakes whose requests and
//! answers are checked against Google's own description.

mod crashes;
mod firebase;
mod play;
mod refusals;
mod uploads;
mod world;
