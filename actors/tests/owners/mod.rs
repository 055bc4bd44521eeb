//! Tests of everything that uses the container engine: the rules, and the owners on an engine that
//! fails on demand. Credentials use no engine; their owners send mails through a server that fails on
//! demand.

mod credentials;
mod events;
mod harness;
mod image_gc;
mod instance_disk;
mod instances;
mod jobs;
mod machine;
mod model;
mod moves;
mod recipes;
mod retention;
mod scene;
mod states;
mod world;
