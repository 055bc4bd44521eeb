//! The declaration of cloud functions, from which the program derives everything else.
//!
//! One entry of a [`functions!`](crate::functions) table declares a function: its name, parameters,
//! reply, standing, effect and faults. The doc comments of the entry are the published
//! documentation.

use crate::{Fault, FaultKind, Requirement, ScopeRule, Standing, params};
use futures_util::future::{FutureExt, LocalBoxFuture};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use std::{rc::Rc, time::Duration};

/// Whether a call changes something. A change may carry an idempotency key, and is then executed
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes.
    Read,
    /// Something durable changes.
    Change,
}

/// An operation of the platform: a cloud function or an endpoint. The implementing type holds the
/// parameters.
pub trait Operation: Serialize + Clone + Send + Sync + 'static {
    /// The declaration.
    const SPEC: Spec;
    /// The name on the wire, in the log and in metrics.
    const NAME: &'static str = Self::SPEC.name;
    /// Whether the operation changes something.
    const EFFECT: Effect = Self::SPEC.effect;
    /// The reply of a successful call.
    type Reply: Serialize + Send + 'static;
    /// The access that a caller needs.
    fn requirement(&self) -> Requirement;
    /// Whether the call created what the reply describes: the status is 201 instead of 200.
    fn is_created(_: &Self::Reply) -> bool {
        false
    }
}

/// A cloud function. [`functions!`](crate::functions) implements it.
pub trait Function:
    Operation<Reply: DeserializeOwned + JsonSchema> + DeserializeOwned + JsonSchema
{
}

/// The declaration of an operation without its types, for tables and documents.
#[derive(Clone, Copy)]
pub struct Spec {
    /// The name on the wire.
    pub name: &'static str,
    /// Whether a call needs the application id. A deploy token replaces it.
    pub application: bool,
    /// The standing that a caller needs.
    pub who: Standing,
    /// The standing that a caller needs who names no object, if `who` is for named objects only.
    pub unnamed: Option<Standing>,
    /// Whether the operation changes something.
    pub effect: Effect,
    /// The scopes that a deploy token needs. If empty, no deploy token may call, unless `any_token`
    /// is set.
    pub scopes: &'static [ScopeRule],
    /// Whether any deploy token may call, whatever its scopes.
    pub any_token: bool,
    /// Whether a call needs a user. The master key alone is then refused.
    pub person: bool,
    /// Whether the call reads the caller's session.
    pub session: SessionUse,
    /// Whether the reply contains a secret, which is shown once and never stored.
    pub secret: bool,
    /// Whether a call can create an object: the status is then 201 instead of 200.
    pub creates: bool,
    /// The deadline, if it differs from the setting for all operations.
    pub limit: Option<Duration>,
    /// The declared cost; 0 if it follows from the parameters. See [`Spec::cost`].
    pub weight: u32,
    /// The faults that only this operation has, with their reasons.
    pub errors: &'static [(FaultKind, &'static str)],
    /// The schema of the parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the reply.
    pub reply: fn(&mut SchemaGenerator) -> Schema,
}

/// Whether a call reads the session in its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// The session identifies the caller. An invalid session is refused.
    Read,
    /// The session is ignored: a stale one must not prevent a sign-in or sign-up.
    Ignored,
}

/// The cost of a list with filters: it may read many more records than it shows.
const FILTERED_LIST: u32 = 2;

impl Spec {
    /// The standing that documents print: the one without which no call passes.
    pub fn least(&self) -> Standing {
        self.unnamed.unwrap_or(self.who)
    }

    /// How many calls of the rate limit a call of this operation counts as.
    pub fn cost(&self) -> u32 {
        if self.weight > 0 {
            return self.weight;
        }
        let fields = self.fields();
        let is_filter = |name: &String| {
            !["limit", "cursor", "state"].contains(&name.as_str()) && !name.ends_with("Id")
        };
        let is_filtered = fields.iter().any(|name| name == "limit") && fields.iter().any(is_filter);
        if is_filtered { FILTERED_LIST } else { 1 }
    }

    /// Whether a read may take that of a thousand records: a page of a list or of a log, or what a declared
    /// cost says.
    pub fn takes_long(&self) -> bool {
        let is_long = || self.weight > 1 || self.fields().iter().any(|name| name == "cursor");
        self.effect == Effect::Read && is_long()
    }

    /// The names of the parameters.
    fn fields(&self) -> Vec<String> {
        let schema = (self.params)(&mut SchemaGenerator::default());
        let fields = schema.get("properties").and_then(|fields| fields.as_object());
        fields.map_or_else(Vec::new, |fields| fields.keys().cloned().collect())
    }

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

/// A group of functions in the documentation.
pub struct Group {
    /// The heading of the group.
    pub name: &'static str,
    /// The functions of the group, in the order of the documentation.
    pub functions: &'static [Spec],
}

/// A server of operations.
pub trait Server: 'static {
    /// Facts about a call, such as the caller and the request id.
    type Context: 'static;
}

/// Serves the operation `F`. The compiler requires an implementation for every declared operation.
#[allow(
    async_fn_in_trait,
    reason = "a call is served on the thread that took it; Send is not needed"
)]
pub trait Serves<F: Operation>: Server {
    /// Executes a call.
    async fn serve(&self, cx: &Self::Context, params: F) -> Result<F::Reply, Fault>;
}

/// The reply of a successful call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// A JSON object: the body of the answer.
    pub json: Vec<u8>,
    /// Whether the call created an object: the status is then 201 instead of 200.
    pub created: bool,
}

/// A call with valid parameters, without its types.
pub trait Prepared<P: Server> {
    /// The access that a caller needs.
    fn requirement(&self) -> Requirement;
    /// SHA-256 of the parameters in canonical form. Equal parameters have equal fingerprints.
    fn fingerprint(&self) -> [u8; 32];
    /// Executes the call and serializes the reply.
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

/// Reads and validates the parameters of a call, from the values in its path and from its body. The
/// body is a JSON object in UTF-8, or empty, which means `{}`.
pub type Prepare<P> = fn(&[String], &[u8]) -> Result<Rc<dyn Prepared<P>>, Fault>;

/// An operation and the server `P` that executes it.
pub struct Route<P: Server> {
    /// The declaration.
    pub spec: Spec,
    /// Reads and validates the parameters.
    pub prepare: Prepare<P>,
}

/// Declares a group of cloud functions.
///
/// One entry declares everything about a function: its properties are fields of [`Spec`]. The macro
/// generates the parameters' type, its [`Function`] implementation, the group's `GROUP` constant, the
/// trait [`Served`] for servers of the whole group, and their `routes`. A group that is missing in
/// [`GROUPS`](crate::GROUPS) does not compile.
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
                who: $who:ident $(of ($($subject:ident),+))? $(or $unnamed:ident)?,
                effect: $effect:ident
                $(, scope: $scope:ident $(or own $own:ident)?)?
                $(, any_token: $any_token:literal)?
                $(, person: $person:literal)?
                $(, session: $session:ident)?
                $(, secret: $secret:literal)?
                $(, cost: $cost:literal)?
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

            impl $crate::Operation for $params {
                const SPEC: $crate::Spec = $crate::Spec {
                    name: $name,
                    application: true,
                    who: $crate::Standing::$who,
                    unnamed: $crate::given!($(Some($crate::Standing::$unnamed))?; None),
                    effect: $crate::Effect::$effect,
                    scopes: &[$($crate::ScopeRule {
                        scope: $crate::Scope::$scope,
                        own: $crate::given!($(Some($crate::Scope::$own))?; None),
                        when: None,
                    })?],
                    any_token: $crate::given!($($any_token)?; false),
                    person: $crate::given!($($person)?; false),
                    session: $crate::given!(
                        $($crate::function::SessionUse::$session)?;
                        $crate::function::SessionUse::Read
                    ),
                    secret: $crate::given!($($secret)?; false),
                    creates: false,
                    limit: None,
                    weight: $crate::given!($($cost)?; 0),
                    errors: &[$($(($crate::FaultKind::$kind, $why)),+)?],
                    params: |g| <$params as schemars::JsonSchema>::json_schema(g),
                    reply: |g| g.subschema_for::<$reply>(),
                };
                type Reply = $reply;
                fn requirement(&self) -> $crate::Requirement {
                    $crate::Requirement {
                        who: Self::SPEC.who,
                        scopes: Self::SPEC.scopes.into(),
                        subject: $crate::given!(
                            $($crate::Subject::from(($(self.$subject.clone()),+)))?;
                            $crate::Subject::None
                        ),
                    }
                }
            }

            impl $crate::Function for $params {}
        )+

        /// The functions of this group.
        pub const GROUP: $crate::function::Group = $crate::function::Group {
            name: $group,
            functions: &[$(<$params as $crate::Operation>::SPEC),+],
        };
        const _: () = $crate::assertions::assert_functions_are_listed(&GROUP, $crate::GROUPS);

        /// A server of all functions of this group.
        pub trait Served: $crate::Server $(+ $crate::Serves<$params>)+ {}
        impl<P: $crate::Server $(+ $crate::Serves<$params>)+> Served for P {}

        /// The routes of this group.
        pub fn routes<P: Served>() -> Vec<$crate::Route<P>> {
            vec![$($crate::Route {
                spec: <$params as $crate::Operation>::SPEC,
                prepare: |_, body| Ok(std::rc::Rc::new($crate::params::read::<$params>(body)?)),
            }),+]
        }
    };
}

/// What a row gives, or the default: `given!($(Some($seconds))?; None)`.
#[doc(hidden)]
#[macro_export]
macro_rules! given {
    (; $default:expr) => {
        $default
    };
    ($given:expr; $default:expr) => {
        $given
    };
}

/// Declares records of the wire format: camelCase names, serialization and a schema.
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
