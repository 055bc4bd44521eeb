//! Where apps are published.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stores of apps")]
pub struct AppStoreArgs {
    /// The address of the Google Play Developer API.
    #[arg(
        long,
        env = "SVC_GOOGLE_PLAY_URL",
        default_value = "https://androidpublisher.googleapis.com"
    )]
    pub google_play_url: String,
    /// The address of Firebase App Distribution.
    #[arg(
        long,
        env = "SVC_FIREBASE_URL",
        default_value = "https://firebaseappdistribution.googleapis.com"
    )]
    pub firebase_url: String,
    /// Where Google gives access tokens to service accounts.
    #[arg(
        long,
        env = "SVC_GOOGLE_TOKEN_URL",
        default_value = "https://oauth2.googleapis.com/token"
    )]
    pub google_token_url: String,
    /// The address of the App Store Connect API.
    #[arg(
        long,
        env = "SVC_APP_STORE_CONNECT_URL",
        default_value = "https://api.appstoreconnect.apple.com"
    )]
    pub app_store_connect_url: String,
}
