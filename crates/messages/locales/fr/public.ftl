## Every page

skip_to_content = Aller au contenu
email = Adresse e-mail
password = Mot de passe
sign_in = Se connecter
make_account = Créer un compte

## The install page of a release

released_on = Publiée le { $date }
install_on_ios = Installer sur iPhone ou iPad
install_on_android = Installer sur Android
download_bundle = Télécharger l’app bundle
kibibytes = { $number } Kio
mebibytes = { $number } Mio
taken_back = Cette version a été retirée et ne peut plus être installée.
ios_needs_https = iOS n’installe que depuis une adresse https ; ce service n’en a pas.
open_on_phone = Ouvrez cette page sur votre téléphone
only_these_devices = { $count ->
    [one] S’installe sur { $number } appareil enregistré
   *[other] S’installe sur { $number } appareils enregistrés
}
device_ends = Les derniers caractères de leurs identifiants (UDID). Si le vôtre n’y est pas, envoyez-le à l’équipe de l’app.
only_from_store = Ce fichier est destiné à l’App Store. Les téléphones le refusent ici : installez l’app avec TestFlight ou depuis l’App Store.
any_device_of_company = S’installe sur les appareils de l’entreprise qui l’a signée.
profile_ends = L’app s’ouvre jusqu’au { $date } ; il faudra ensuite une nouvelle version.
profile_ended = L’app ne s’ouvre plus depuis le { $date } : son profil a expiré. Demandez une nouvelle version.

## The page after a payment

paid = Merci
paid_text = Votre paiement de { $total } est arrivé.
pending = Un instant
pending_text = Votre paiement de { $total } n’est pas encore confirmé. Cette page s’actualise toute seule.
not_paid = Non payé
failed_text = Le paiement de { $total } n’a pas abouti.
abandoned_text = { $total } : ce montant n’a pas été payé.
your_order = Votre commande :
reference = Référence { $reference }

## Signing in

needs_https = Les navigateurs ne gardent une session qu’en https. Donnez à SVC_DASHBOARD_URL une adresse en https.
no_administrator = Ce serveur n’a pas encore d’administrateur. Le lien qui crée le premier compte se trouve dans son journal.
has_administrator = Ce serveur a un administrateur. Connectez-vous, ou créez un compte.
session_over = Votre session est terminée. Connectez-vous pour continuer.
session_over_kept = Votre session est terminée. Votre saisie est conservée : connectez-vous, puis renvoyez-la.
signed_in_again = Vous êtes de nouveau connecté
kept_without_secrets = Votre saisie précédente a été conservée, sauf les secrets : il faudra peut-être les saisir à nouveau.
send_it = Envoyer
leave_it = Abandonner, et aller à l’accueil
forgot = J’ai oublié mon mot de passe

## A new account

new_account = Nouveau compte
name = Nom
name_hint = Les autres le voient. Par défaut, c’est le début de l’adresse e-mail.
password_hint = 8 caractères au moins.
make_the_account = Créer le compte
has_account = J’ai déjà un compte
registration_closed = Les inscriptions sont fermées sur ce service. Son opérateur crée les comptes : demandez-lui le vôtre.
token_of_invitation = Jeton de l’invitation
token_of_invitation_hint = Il se trouve dans l’e-mail d’invitation. Inscrivez-vous avec l’adresse qui l’a reçu.
first_administrator = Premier administrateur
first_administrator_does = Le premier administrateur de ce serveur voit et modifie tout. Ce lien en crée un, une seule fois.
become_administrator = Devenir l’administrateur

## A forgotten password

forgotten_password = Mot de passe oublié
forgot_mail = Vous recevrez un e-mail avec un lien pour choisir un nouveau mot de passe.
forgot_no_mail = Ce serveur n’envoie pas d’e-mails. Demandez ici un nouveau mot de passe, puis demandez le lien à l’opérateur : il se trouve dans le journal.
send_mail = Envoyer l’e-mail
ask_for_password = Demander un nouveau mot de passe
have_token = J’ai un jeton
asked_mail = S’il existe un compte avec cette adresse, un e-mail avec un lien est en route.
asked_no_mail = Ce serveur n’envoie pas d’e-mails. S’il existe un compte avec cette adresse, son opérateur trouve le lien dans le journal.

## A new password

new_password = Nouveau mot de passe
new_password_ends = Cela vous déconnecte partout et met fin à vos jetons de déploiement. Les éditeurs de confiance que vous avez ajoutés sont supprimés, et les webhooks que vous avez créés sont désactivés.
token_of_link = Jeton du lien
set_password = Enregistrer le mot de passe
password_set = Le nouveau mot de passe est valable dès maintenant. Connectez-vous avec lui.

## Une autre adresse e-mail

confirm_email = Confirmer votre adresse e-mail
confirm_email_why = Le compte reçoit cette adresse dès que vous confirmez que vous en lisez le courrier.
email_confirmed = Le compte a sa nouvelle adresse e-mail.

## An invitation

invitation = Invitation
join = Rejoindre une organisation
join_first = Utilisez l’adresse e-mail qui a reçu l’invitation. Vous reviendrez ensuite ici.
join_as = Une invitation vaut pour l’adresse qui l’a reçue. Vous êtes connecté en tant que :
join_now = Rejoindre

## What cannot be shown

not_found = Introuvable
not_allowed = Non autorisé
went_wrong = Une erreur s’est produite
not_done = Non effectué
leads_nowhere = Ce lien ne mène à rien. Demandez-en un nouveau aux personnes qui vous l’ont envoyé.
go_to_start = Aller à l’accueil
