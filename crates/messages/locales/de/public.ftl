## Every page

skip_to_content = Zum Inhalt springen
email = E-Mail
password = Passwort
sign_in = Anmelden
make_account = Konto anlegen

## The install page of a release

released_on = Veröffentlicht am { $date }
install_on_ios = Auf iPhone oder iPad installieren
install_on_android = Auf Android installieren
download_bundle = App-Bundle herunterladen
kibibytes = { $number } KiB
mebibytes = { $number } MiB
taken_back = Diese Version wurde zurückgezogen und kann nicht mehr installiert werden.
ios_needs_https = iOS installiert nur von einer https-Adresse; dieser Dienst hat keine.
open_on_phone = Öffnen Sie diese Seite auf Ihrem Telefon
only_these_devices = { $count ->
    [one] Lässt sich auf { $number } registrierten Gerät installieren
   *[other] Lässt sich auf { $number } registrierten Geräten installieren
}
device_ends = Die letzten Zeichen ihrer Kennungen (UDID). Fehlt Ihres, schicken Sie die Kennung an das Team der App.
only_from_store = Diese Datei ist für den App Store. Telefone lehnen sie hier ab: Installieren Sie die App über TestFlight oder den App Store.
any_device_of_company = Lässt sich auf den Geräten der Firma installieren, die sie signiert hat.
profile_ends = Die App öffnet sich bis zum { $date }; danach braucht sie eine neue Version.
profile_ended = Die App öffnet sich seit dem { $date } nicht mehr: Ihr Profil ist abgelaufen. Bitten Sie um eine neue Version.

## The page after a payment

paid = Danke
paid_text = Ihre Zahlung von { $total } ist angekommen.
pending = Einen Moment
pending_text = Ihre Zahlung von { $total } ist noch nicht bestätigt. Diese Seite sieht von selbst noch einmal nach.
not_paid = Nicht bezahlt
failed_text = Die Zahlung von { $total } ist fehlgeschlagen.
abandoned_text = { $total } wurden nicht bezahlt.
your_order = Ihre Bestellung:
reference = Referenz { $reference }

## Signing in

needs_https = Browser behalten eine Sitzung nur über https. Setzen Sie SVC_DASHBOARD_URL auf eine Adresse mit https.
no_administrator = Dieser Server hat noch keinen Administrator. Der Link für das erste Konto steht in seinem Log.
has_administrator = Dieser Server hat einen Administrator. Melden Sie sich an, oder legen Sie ein Konto an.
session_over = Ihre Sitzung ist beendet. Melden Sie sich an, um fortzufahren.
session_over_kept = Ihre Sitzung ist beendet. Ihre Eingaben bleiben erhalten: Melden Sie sich an, und senden Sie sie noch einmal.
signed_in_again = Sie sind wieder angemeldet
kept_without_secrets = Ihre Eingaben sind erhalten, Geheimnisse nicht: Vielleicht müssen Sie diese noch einmal eingeben.
send_it = Senden
leave_it = Verwerfen und zur Startseite
forgot = Ich habe mein Passwort vergessen

## A new account

new_account = Neues Konto
name = Name
name_hint = Andere sehen ihn. Ohne Angabe ist es der erste Teil der E-Mail-Adresse.
password_hint = Mindestens 8 Zeichen.
make_the_account = Konto anlegen
has_account = Ich habe ein Konto
registration_closed = Dieser Dienst nimmt keine Registrierungen an. Sein Betreiber legt Konten an: Bitten Sie ihn um eines.
token_of_invitation = Token der Einladung
token_of_invitation_hint = Aus der E-Mail mit Ihrer Einladung. Registrieren Sie sich mit der Adresse, an die sie ging.
first_administrator = Erster Administrator
first_administrator_does = Der erste Administrator dieses Servers sieht und ändert alles. Dieser Link legt ihn an, genau einmal.
become_administrator = Administrator werden

## A forgotten password

forgotten_password = Passwort vergessen
forgot_mail = Sie erhalten eine E-Mail mit einem Link für ein neues Passwort.
forgot_no_mail = Dieser Server verschickt keine E-Mails. Fordern Sie hier ein neues Passwort an, und bitten Sie dann den Betreiber um den Link; er steht im Log.
send_mail = E-Mail senden
ask_for_password = Neues Passwort anfordern
have_token = Ich habe ein Token
asked_mail = Falls es ein Konto mit dieser Adresse gibt, ist eine E-Mail mit einem Link unterwegs.
asked_no_mail = Dieser Server verschickt keine E-Mails. Falls es ein Konto mit dieser Adresse gibt, findet sein Betreiber den Link im Log.

## A new password

new_password = Neues Passwort
new_password_ends = Damit werden Sie überall abgemeldet, und Ihre Deploy-Tokens enden. Vertrauenswürdige Veröffentlicher, die Sie hinzugefügt haben, werden entfernt, und Webhooks, die Sie angelegt haben, werden abgeschaltet.
token_of_link = Token des Links
set_password = Passwort setzen
password_set = Ab jetzt gilt das neue Passwort. Melden Sie sich damit an.

## Eine andere E-Mail-Adresse

confirm_email = E-Mail-Adresse bestätigen
confirm_email_why = Das Konto bekommt diese E-Mail-Adresse, sobald Sie bestätigen, dass Sie ihre Post lesen.
email_confirmed = Das Konto hat seine neue E-Mail-Adresse.

## An invitation

invitation = Einladung
join = Einer Organisation beitreten
join_first = Verwenden Sie die Adresse, an die die Einladung ging. Danach kommen Sie hierher zurück.
join_as = Eine Einladung gilt für die Adresse, an die sie ging. Sie sind angemeldet als:
join_now = Beitreten

## What cannot be shown

not_found = Nicht gefunden
not_allowed = Nicht erlaubt
went_wrong = Etwas ist schiefgegangen
not_done = Nicht erledigt
leads_nowhere = Dieser Link führt zu nichts. Bitten Sie die Leute, die ihn geschickt haben, um einen neuen.
go_to_start = Zur Startseite
