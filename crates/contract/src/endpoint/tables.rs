//! The tables of endpoints, from which the program derives everything else.
//!
//! Every endpoint has a method and a path. The platform serves some endpoints through the same
//! pipeline as cloud functions ([`endpoints!`](crate::endpoints)). The edge answers the others
//! itself, because they transfer files or pages ([`edge_endpoints!`](crate::edge_endpoints)).
//!
//! A table names its group: `group Uploads "Artifact endpoints";` makes the type `Uploads`, whose
//! `GROUP` documents print under this heading. A group that is missing in
//! [`GROUPS`](crate::endpoint::GROUPS) does not compile.

/// Declares a group of endpoints that the platform serves like functions.
///
/// One entry declares everything about an endpoint: its properties are fields of
/// [`Spec`](crate::Spec). The macro generates the operation's type, which holds the values of the
/// path and the body, and its [`Operation`](crate::Operation) implementation. The group is
/// [`ServedBy`](crate::endpoint::ServedBy) every server of all its operations.
#[macro_export]
macro_rules! endpoints {
    (
        group $group:ident $heading:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:literal : $method:ident $path:literal
            => $operation:ident { $($field:ident : $id:ty = $noun:literal),* } -> $reply:ty
            {
                body: $body:ty,
                who: $who:ident $(of ($($subject:ident).+))?,
                effect: $effect:ident
                $(, scopes: [$($scope:ident $(or own $own:ident)? $(when $asked:ident $when:literal)?),+ $(,)?])?
                $(, person: $person:literal)?
                $(, secret: $secret:literal)?
                $(, limit: $seconds:literal)?
                $(, cost: $cost:literal)?
                $(, created: $created:literal)?,
                done: $done:literal
                $(, errors: [$($kind:ident $why:literal),+ $(,)?])?
                $(,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, serde::Serialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $operation {
                $(#[doc = concat!("The ", $noun, ", from the path.")] pub $field: $id,)*
                /// The body of the request.
                pub body: $body,
            }

            impl $crate::Operation for $operation {
                const SPEC: $crate::Spec = $crate::Spec {
                    name: $name,
                    application: $crate::endpoint::is_below_base($path),
                    who: $crate::Standing::$who,
                    unnamed: None,
                    effect: $crate::Effect::$effect,
                    scopes: &[$($($crate::ScopeRule {
                        scope: $crate::Scope::$scope,
                        own: $crate::given!($(Some($crate::Scope::$own))?; None),
                        when: $crate::given!($(Some($when))?; None),
                    }),+)?],
                    any_token: false,
                    person: $crate::given!($($person)?; false),
                    session: $crate::function::SessionUse::Read,
                    secret: $crate::given!($($secret)?; false),
                    creates: $crate::if_given!([$($created)?] [true] [false]),
                    limit: $crate::given!($(Some(std::time::Duration::from_secs($seconds)))?; None),
                    weight: $crate::given!($($cost)?; 0),
                    errors: &[$($(($crate::FaultKind::$kind, $why)),+)?],
                    params: |g| g.subschema_for::<$body>(),
                    reply: |g| g.subschema_for::<$reply>(),
                };
                type Reply = $crate::if_given!([$($created)?] [$crate::endpoint::Created<$reply>] [$reply]);
                fn requirement(&self) -> $crate::Requirement {
                    let applies: &[bool] = &[$($($crate::given!($(self.body.$asked())?; true)),+)?];
                    let rules = Self::SPEC.scopes.iter().zip(applies);
                    $crate::Requirement {
                        who: Self::SPEC.who,
                        scopes: rules.filter(|(_, applies)| **applies).map(|(rule, _)| *rule).collect(),
                        subject: $crate::given!(
                            $($crate::Subject::from(self.$($subject).+.clone()))?;
                            $crate::Subject::None
                        ),
                    }
                }
                $crate::if_given!([$($created)?] [
                    fn is_created(reply: &Self::Reply) -> bool {
                        matches!(reply, $crate::endpoint::Created::Now(_))
                    }
                ] []);
            }
        )+

        #[doc = concat!("The group \u{201c}", $heading, "\u{201d}.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $group;

        impl $group {
            /// The endpoints of this group.
            pub const GROUP: $crate::endpoint::EndpointGroup = $crate::endpoint::EndpointGroup {
                name: $heading,
                endpoints: &[$($crate::endpoint::Endpoint {
                    name: $name,
                    method: $crate::endpoint::Method::$method,
                    path: $path,
                    docs: concat!($($doc, "\n"),+),
                    access: $crate::endpoint::Access::Operation(<$operation as $crate::Operation>::SPEC),
                    reads: &[],
                    body: $crate::endpoint::BodyContent::json::<$body>(),
                    answers: &[
                        $($crate::endpoint::Success::json::<$reply>(201, $created),)?
                        $crate::endpoint::Success::json::<$reply>(200, $done),
                    ],
                    errors: &[],
                }),+],
            };
        }
        const _: () =
            $crate::assertions::assert_endpoints_are_listed(&$group::GROUP, $crate::endpoint::GROUPS);

        impl<P: $crate::Server $(+ $crate::Serves<$operation>)+> $crate::endpoint::ServedBy<P> for $group {
            fn routes() -> Vec<$crate::Route<P>> {
                vec![$($crate::Route {
                    spec: <$operation as $crate::Operation>::SPEC,
                    prepare: |path, body| {
                        $(let ($field, path) = $crate::endpoint::path_value::<$id>(path, $noun)?;)*
                        let _ = path;
                        let body = $crate::params::read::<$body>(body)?;
                        Ok(std::rc::Rc::new($operation { $($field,)* body }))
                    },
                }),+]
            }
        }
    };
}

/// Declares a group of endpoints that the edge answers itself.
///
/// One entry declares everything about an endpoint: its properties are fields of
/// [`Endpoint`](crate::endpoint::Endpoint). The macro generates a type for each endpoint. The group is
/// [`AnsweredBy`](crate::endpoint::AnsweredBy) every edge that answers all its endpoints.
#[macro_export]
macro_rules! edge_endpoints {
    (
        group $group:ident $heading:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:literal : $method:ident $path:literal => $endpoint:ident
            {
                access: $access:ident
                $(, reads: [$($read:literal $read_why:literal),+ $(,)?])?
                $(, body: $body:ident ($($of:tt)*))?,
                answers: [$($status:literal $content:ident $(($($answered:tt)*))? $why:literal $([$($header:literal $header_why:literal),+ $(,)?])?),+ $(,)?]
                $(, errors: [$($kind:ident $error:literal),+ $(,)?])?
                $(,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $endpoint;

            impl $endpoint {
                /// What the router and the documents know of the endpoint.
                pub const DECLARATION: $crate::endpoint::Endpoint = $crate::endpoint::Endpoint {
                    name: $name,
                    method: $crate::endpoint::Method::$method,
                    path: $path,
                    docs: concat!($($doc, "\n"),+),
                    access: $crate::endpoint::Access::$access,
                    reads: &[$($(($read, $read_why)),+)?],
                    body: $crate::given!($($crate::content!($body ($($of)*)))?; $crate::content!(Empty)),
                    answers: &[$($crate::endpoint::Success {
                        status: $status,
                        content: $crate::content!($content $(($($answered)*))?),
                        why: $why,
                        headers: &[$($(($header, $header_why)),+)?],
                    }),+],
                    errors: &[$($(($crate::FaultKind::$kind, $error)),+)?],
                };
            }
        )+

        #[doc = concat!("The group \u{201c}", $heading, "\u{201d}.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $group;

        impl $group {
            /// The endpoints of this group.
            pub const GROUP: $crate::endpoint::EndpointGroup = $crate::endpoint::EndpointGroup {
                name: $heading,
                endpoints: &[$($endpoint::DECLARATION),+],
            };
        }
        const _: () =
            $crate::assertions::assert_endpoints_are_listed(&$group::GROUP, $crate::endpoint::GROUPS);

        impl<E: $crate::endpoint::Edge $(+ $crate::endpoint::Answers<$endpoint>)+>
            $crate::endpoint::AnsweredBy<E> for $group
        {
            fn routes() -> Vec<$crate::endpoint::EdgeRoute<E>> {
                vec![$($crate::endpoint::EdgeRoute {
                    endpoint: &$endpoint::DECLARATION,
                    answer: |it| Box::pin(<E as $crate::endpoint::Answers<$endpoint>>::answer(it)),
                }),+]
            }
        }
    };
}

/// The content of a body, as tables write it.
#[doc(hidden)]
#[macro_export]
macro_rules! content {
    (Empty) => {
        $crate::endpoint::BodyContent::Empty
    };
    (Json($of:ty)) => {
        $crate::endpoint::BodyContent::json::<$of>()
    };
    (Media($of:literal)) => {
        $crate::endpoint::BodyContent::Media($of)
    };
}

/// One of two, by whether a row says something: `if_given!([$($created)?] [true] [false])`.
#[doc(hidden)]
#[macro_export]
macro_rules! if_given {
    ([] [$($then:tt)*] [$($otherwise:tt)*]) => { $($otherwise)* };
    ([$($given:tt)+] [$($then:tt)*] [$($otherwise:tt)*]) => { $($then)* };
}
