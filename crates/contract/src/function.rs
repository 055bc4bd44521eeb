//! The declaration of a cloud function, and what the rest of the program derives from it.
//!
//! A function is declared by one entry of a [`functions!`](crate::functions) table: its wire name,
//! its parameters, its reply, who may call it, whether it changes anything, and what it can refuse.
//! The doc comments of the entry are the published documentation.

use crate::{Fault, FaultKind, Requirement, ScopeRule, Standing, params};
use futures_util::future::{FutureExt, LocalBoxFuture};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use std::{rc::Rc, time::Duration};

/// Whether a call changes anything. A change may carry a request id, and then happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes.
    Read,
    /// Something durable changes.
    Change,
}

/// What the platform serves: a cloud function, or an endpoint. The type is its parameters.
pub trait Operation: Serialize + Clone + Send + Sync + 'static {
    /// Its name: on the wire, in the log, in the figures.
    const NAME: &'static str;
    /// Whether it changes anything.
    const EFFECT: Effect;
    /// What it answers.
    type Reply: Serialize + Send + 'static;
    /// What it requires of its caller.
    fn requirement(&self) -> Requirement;
    /// Whether this reply tells of something that the call made: 201 instead of 200.
    fn is_created(_: &Self::Reply) -> bool {
        false
    }
}

/// A cloud function. [`functions!`](crate::functions) implements it.
pub trait Function:
    Operation<Reply: DeserializeOwned + JsonSchema> + DeserializeOwned + JsonSchema
{
}

/// The declaration of an operation with its types erased: for tables, documents and help pages.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Whether a caller must send the application id. A deploy token stands for it.
    pub application: bool,
    /// Who may call it.
    pub who: Standing,
    /// Whether it changes anything.
    pub effect: Effect,
    /// The scopes that let a deploy token in. Empty: no token may call it.
    pub scopes: &'static [ScopeRule],
    /// A user must stand behind the call: the master key alone is refused.
    pub person: bool,
    /// Whether a session that comes along is looked at.
    pub session: SessionUse,
    /// The reply holds a secret: it is shown once and never stored.
    pub secret: bool,
    /// A change makes what the reply tells of: 201 instead of 200.
    pub creates: bool,
    /// How long it may take, where that is not what the settings say for all.
    pub limit: Option<Duration>,
    /// The refusals of its own, beyond those every operation of its standing has: kind and reason.
    pub errors: &'static [(FaultKind, &'static str)],
    /// Schema of the parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the reply.
    pub reply: fn(&mut SchemaGenerator) -> Schema,
}

/// Whether a session that comes with a call is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// It says who calls; one that is not valid is refused.
    Read,
    /// The call signs somebody in or up: a stale session that comes along does not matter.
    Ignored,
}

impl Spec {
    /// The whole doc comment of the declaration.
    pub fn documentation(&self) -> String {
        let schema = (self.params)(&mut SchemaGenerator::default());
        schema.get("description").and_then(|d| d.as_str()).unwrap_or_default().to_owned()
    }

    /// The first paragraph of the doc comment, on one line.
    pub fn summary(&self) -> String {
        self.documentation().split("\n\n").next().unwrap_or_default().replace('\n', " ")
    }
}

/// Functions that are documented together.
pub struct Group {
    /// The heading of the group.
    pub name: &'static str,
    /// Its functions.
    pub functions: &'static [Spec],
}

/// Something that serves operations, given a context for each call.
pub trait Server: 'static {
    /// What a call brings along: who called, under which request id.
    type Context: 'static;
}

/// Something that serves `F`. The compiler asks it of a server for every declared operation.
#[allow(
    async_fn_in_trait,
    reason = "a call is served on the thread that took it; Send is not needed"
)]
pub trait Serves<F: Operation>: Server {
    /// Does it, or says why not.
    async fn serve(&self, cx: &Self::Context, params: F) -> Result<F::Reply, Fault>;
}

/// The reply to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its JSON.
    pub json: Vec<u8>,
    /// The call made what the reply tells of: 201 instead of 200.
    pub created: bool,
}

/// A call whose parameters are valid, its types erased.
pub trait Prepared<P: Server> {
    /// What it requires of its caller.
    fn requirement(&self) -> Requirement;
    /// Tells calls with the same parameters from others: SHA-256 of their canonical form.
    fn fingerprint(&self) -> [u8; 32];
    /// Does it and gives the reply.
    fn serve<'a>(
        &'a self,
        server: &'a P,
        cx: &'a P::Context,
    ) -> LocalBoxFuture<'a, Result<Reply, Fault>>;
}

impl<P: Serves<F>, F: Operation> Prepared<P> for F {
    fn requirement(&self) -> Requirement {
        Operation::requirement(self)
    }

    fn fingerprint(&self) -> [u8; 32] {
        params::fingerprint(self)
    }

    fn serve<'a>(
        &'a self,
        server: &'a P,
        cx: &'a P::Context,
    ) -> LocalBoxFuture<'a, Result<Reply, Fault>> {
        async move {
            let reply = Serves::serve(server, cx, self.clone()).await?;
            let json = serde_json::to_vec(&reply).map_err(|_| Fault::Uncertain)?;
            Ok(Reply { json, created: F::is_created(&reply) })
        }
        .boxed_local()
    }
}

/// Reads and checks the parameters of a call: the values in its path, where it has some, and its
/// body, which is a JSON object in UTF-8, or nothing for `{}`.
pub type Prepare<P> = fn(&[String], &[u8]) -> Result<Rc<dyn Prepared<P>>, Fault>;

/// An operation bound to the server `P` that does it.
pub struct Route<P: Server> {
    /// The declaration.
    pub spec: Spec,
    /// Reads and checks the parameters.
    pub prepare: Prepare<P>,
}

/// Declares a group of cloud functions.
///
/// Each entry is the whole truth about one function. The macro makes the parameters' type, its
/// [`Function`] implementation, the group's `GROUP` constant, and the trait [`Served`] of servers
/// that serve all of it. A group that is missing in [`GROUPS`](crate::GROUPS) does not compile.
///
/// [`Served`]: crate::projects::Served
#[macro_export]
macro_rules! functions {
    (
        group $group:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:literal : $params:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? } -> $reply:ty
            {
                who: $who:ident $(of ($($subject:ident),+))?,
                effect: $effect:ident
                $(, scope: $scope:ident $(or own $own:ident)?)?
                $(, person: $person:ident)?
                $(, session: $session:ident)?
                $(, secret: $secret:literal)?
                $(, errors: [$($kind:ident $why:literal),+ $(,)?])?
                $(,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            #[allow(missing_docs, reason = "a field whose name says all needs no sentence")]
            pub struct $params { $($(#[$field_meta])* pub $field: $ty),* }

            impl $params {
                const SCOPES: &[$crate::ScopeRule] = &[$($crate::ScopeRule {
                    scope: $crate::Scope::$scope,
                    own: $crate::declared!(own $($own)?),
                    when: None,
                })?];
            }

            impl $crate::Operation for $params {
                const NAME: &'static str = $name;
                const EFFECT: $crate::Effect = $crate::Effect::$effect;
                type Reply = $reply;
                fn requirement(&self) -> $crate::Requirement {
                    $crate::Requirement {
                        who: $crate::Standing::$who,
                        scopes: Self::SCOPES.into(),
                        subject: $crate::declared!(subject self $(, $($subject),+)?),
                    }
                }
            }

            impl $crate::Function for $params {}
        )+

        /// The functions of this group.
        pub const GROUP: $crate::function::Group = $crate::function::Group {
            name: $group,
            functions: &[$($crate::Spec {
                name: $name,
                application: true,
                who: $crate::Standing::$who,
                effect: $crate::Effect::$effect,
                scopes: $params::SCOPES,
                person: $crate::declared!(person $($person)?),
                session: $crate::declared!(session $($session)?),
                secret: $crate::declared!(secret $($secret)?),
                creates: false,
                limit: None,
                errors: &[$($(($crate::FaultKind::$kind, $why)),+)?],
                params: |g| <$params as schemars::JsonSchema>::json_schema(g),
                reply: |g| g.subschema_for::<$reply>(),
            }),+],
        };
        const _: () = $crate::function::assert_is_listed(&GROUP, $crate::GROUPS);

        /// A server that serves all functions of this group.
        pub trait Served: $crate::Server $(+ $crate::Serves<$params>)+ {}
        impl<P: $crate::Server $(+ $crate::Serves<$params>)+> Served for P {}

        /// The routes of this group.
        pub fn routes<P: Served>() -> Vec<$crate::Route<P>> {
            let mut specs = GROUP.functions.iter();
            let mut routes = Vec::new();
            $(if let Some(spec) = specs.next() {
                routes.push($crate::Route {
                    spec: *spec,
                    prepare: |_, body| Ok(std::rc::Rc::new($crate::params::read::<$params>(body)?)),
                });
            })+
            routes
        }
    };
}

/// What the optional properties of a declaration stand for.
#[doc(hidden)]
#[macro_export]
macro_rules! declared {
    (subject $this:ident) => { { let _ = $this; $crate::Subject::None } };
    (subject $this:ident, $($subject:ident),+) => { $crate::Subject::from(($($this.$subject.clone()),+)) };
    (subject $this:ident, $($subject:ident).+) => { $crate::Subject::from($this.$($subject).+.clone()) };
    (reply $reply:ty) => { $reply };
    (reply $reply:ty, $created:literal) => { $crate::endpoint::Made<$reply> };
    (is_created $reply:ident) => { { let _ = $reply; false } };
    (is_created $reply:ident $created:literal) => { matches!($reply, $crate::endpoint::Made::Now(_)) };
    (own) => { None };
    (own $own:ident) => { Some($crate::Scope::$own) };
    (person) => { false };
    (person required) => { true };
    (session) => { $crate::function::SessionUse::Read };
    (session ignored) => { $crate::function::SessionUse::Ignored };
    (asked $this:ident) => { true };
    (asked $this:ident $asked:ident) => { $this.body.$asked() };
    (when) => { None };
    (when $when:literal) => { Some($when) };
    (creates) => { false };
    (creates $created:literal) => { true };
    (limit) => { None };
    (limit $seconds:literal) => { Some(std::time::Duration::from_secs($seconds)) };
    (content) => { $crate::endpoint::Content::Empty };
    (content Empty) => { $crate::endpoint::Content::Empty };
    (content Json ($($of:tt)*)) => { $crate::endpoint::Content::Json(|g| g.subschema_for::<$($of)*>()) };
    (content Media ($($of:tt)*)) => { $crate::endpoint::Content::Media($($of)*) };
    (secret) => { false };
    (secret $secret:literal) => { $secret };
}

/// Declares records of the wire: camelCase names, both directions, a schema.
#[macro_export]
macro_rules! records {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase")]
            #[allow(missing_docs, reason = "a field whose name says all needs no sentence")]
            pub struct $name { $($(#[$field_meta])* pub $field: $ty),* }
        )+
    };
}

/// Fails the build when a group is not among all groups: nobody would serve it.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_is_listed(group: &Group, groups: &[Group]) {
    let mut i = 0;
    while i < groups.len() {
        if same(groups[i].name.as_bytes(), group.name.as_bytes()) {
            return;
        }
        i += 1;
    }
    panic!("this group of functions is missing in `groups!` of contract/src/lib.rs");
}

/// Fails the build when two functions share a name or a name breaks the grammar
/// `[A-Za-z][A-Za-z0-9_]{0,127}`.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_names_are_unique(groups: &[Group]) {
    let mut g = 0;
    while g < groups.len() {
        let mut i = 0;
        while i < groups[g].functions.len() {
            let name = groups[g].functions[i].name;
            assert!(is_a_name(name.as_bytes()), "a function's name breaks the grammar");
            let mut h = g;
            while h < groups.len() {
                let mut j = if h == g { i + 1 } else { 0 };
                while j < groups[h].functions.len() {
                    let other = groups[h].functions[j].name;
                    assert!(!same(name.as_bytes(), other.as_bytes()), "two functions share a name");
                    j += 1;
                }
                h += 1;
            }
            i += 1;
        }
        g += 1;
    }
}

#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether this is a name that a function could have.
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
pub const fn is_a_name(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > 128 || !name[0].is_ascii_alphabetic() {
        return false;
    }
    let mut i = 1;
    while i < name.len() {
        if !name[i].is_ascii_alphanumeric() && name[i] != b'_' {
            return false;
        }
        i += 1;
    }
    true
}
