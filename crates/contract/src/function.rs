//! The declaration of a cloud function, and what the rest of the program derives from it.
//!
//! A function is declared by one entry of a [`functions!`](crate::functions) table: its wire name,
//! its parameters, its reply, who may call it, whether it changes anything, and what it can refuse.
//! The doc comments of the entry are the published documentation.

use crate::{Fault, Scope, Standing, Subject, params};
use futures_util::future::{FutureExt, LocalBoxFuture};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use std::rc::Rc;

/// Whether a call changes anything. A change may carry a request id, and then happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes.
    Read,
    /// Something durable changes.
    Change,
}

/// A cloud function. The type is its parameters; [`functions!`](crate::functions) implements it.
pub trait Function:
    Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static
{
    /// Its name on the wire.
    const NAME: &'static str;
    /// Who may call it.
    const WHO: Standing;
    /// Whether it changes anything.
    const EFFECT: Effect;
    /// What it answers.
    type Reply: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// The object its standing is asked about.
    fn subject(&self) -> Subject;
}

/// A function with its types erased: for tables, documents and help pages.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Its name on the wire.
    pub name: &'static str,
    /// Who may call it.
    pub who: Standing,
    /// Whether it changes anything.
    pub effect: Effect,
    /// The deploy token scope that may stand in for a session.
    pub scope: Option<Scope>,
    /// The scope that is enough for what the deploy token itself created.
    pub own_scope: Option<Scope>,
    /// The reply holds a secret: it is shown once and never stored for a replay.
    pub secret: bool,
    /// The refusals of its own, beyond those every function of its standing has: code and reason.
    pub errors: &'static [(u16, &'static str)],
    /// Schema of the parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the reply.
    pub reply: fn(&mut SchemaGenerator) -> Schema,
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

/// Something that does functions, given a context for each call.
pub trait Server: 'static {
    /// What a call brings along: who called, under which request id.
    type Context: 'static;
}

/// Something that can do `F`. The compiler asks it of a server for every declared function.
#[allow(
    async_fn_in_trait,
    reason = "a call is served on the thread that took it; Send is not needed"
)]
pub trait Serves<F: Function>: Server {
    /// Does it, or says why not.
    async fn serve(&self, cx: &Self::Context, params: F) -> Result<F::Reply, Fault>;
}

/// A call whose parameters are valid, its types erased.
pub trait Prepared<P: Server> {
    /// The object the standing is asked about.
    fn subject(&self) -> Subject;
    /// Tells calls with the same parameters from others: SHA-256 of their canonical form.
    fn fingerprint(&self) -> [u8; 32];
    /// Does it and gives the reply's JSON.
    fn serve<'a>(
        &'a self,
        server: &'a P,
        cx: &'a P::Context,
    ) -> LocalBoxFuture<'a, Result<Vec<u8>, Fault>>;
}

impl<P: Serves<F>, F: Function> Prepared<P> for F {
    fn subject(&self) -> Subject {
        Function::subject(self)
    }

    fn fingerprint(&self) -> [u8; 32] {
        params::fingerprint(self)
    }

    fn serve<'a>(
        &'a self,
        server: &'a P,
        cx: &'a P::Context,
    ) -> LocalBoxFuture<'a, Result<Vec<u8>, Fault>> {
        async move {
            let reply = Serves::serve(server, cx, self.clone()).await?;
            serde_json::to_vec(&reply).map_err(|_| Fault::Uncertain)
        }
        .boxed_local()
    }
}

/// Reads and checks the bytes of a call's parameters.
pub type Prepare<P> = fn(&[u8]) -> Result<Rc<dyn Prepared<P>>, Fault>;

/// A function bound to the server `P` that does it.
pub struct Route<P: Server> {
    /// The declaration.
    pub spec: Spec,
    /// Reads and checks the parameters: a JSON object in UTF-8, or nothing for `{}`.
    pub prepare: Prepare<P>,
}

/// Declares a group of cloud functions.
///
/// Each entry is the whole truth about one function. The macro makes the parameters' type, its
/// [`Function`] implementation, the group's [`GROUP`](crate::GROUPS) constant, and `routes`, which
/// compiles only for a server that serves every function of the group.
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
                $(, scope: $scope:ident $(or own $own_scope:ident)?)?
                $(, secret: $secret:literal)?
                $(, errors: [$($code:literal $why:literal),+ $(,)?])?
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

            impl $crate::Function for $params {
                const NAME: &'static str = $name;
                const WHO: $crate::Standing = $crate::Standing::$who;
                const EFFECT: $crate::Effect = $crate::Effect::$effect;
                type Reply = $reply;
                fn subject(&self) -> $crate::Subject {
                    functions!(@subject self $(, $($subject),+)?)
                }
            }
        )+

        /// The functions of this group.
        pub const GROUP: $crate::function::Group = $crate::function::Group {
            name: $group,
            functions: &[$($crate::Spec {
                name: $name,
                who: $crate::Standing::$who,
                effect: $crate::Effect::$effect,
                scope: functions!(@scope $($scope)?),
                own_scope: functions!(@scope $($($own_scope)?)?),
                secret: functions!(@secret $($secret)?),
                errors: &[$($(($code, $why)),+)?],
                params: |g| <$params as schemars::JsonSchema>::json_schema(g),
                reply: |g| g.subschema_for::<$reply>(),
            }),+],
        };

        /// The routes of this group, for a server that serves all of it.
        pub fn routes<P>() -> Vec<$crate::Route<P>>
        where
            P: $crate::Server $(+ $crate::Serves<$params>)+
        {
            let mut specs = GROUP.functions.iter();
            let mut routes = Vec::new();
            $(if let Some(spec) = specs.next() {
                routes.push($crate::Route {
                    spec: *spec,
                    prepare: |body| Ok(std::rc::Rc::new($crate::params::read::<$params>(body)?)),
                });
            })+
            routes
        }
    };
    (@subject $this:ident) => { { let _ = $this; $crate::Subject::None } };
    (@subject $this:ident, $($subject:ident),+) => { $crate::Subject::from(($($this.$subject.clone()),+)) };
    (@scope) => { None };
    (@scope $scope:ident) => { Some($crate::Scope::$scope) };
    (@secret) => { false };
    (@secret $secret:literal) => { $secret };
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
