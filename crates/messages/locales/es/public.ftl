## Every page

skip_to_content = Ir al contenido
email = Correo electrónico
password = Contraseña
sign_in = Iniciar sesión
make_account = Crear una cuenta

## The install page of a release

released_on = Publicada el { $date }
install_on_ios = Instalar en iPhone o iPad
install_on_android = Instalar en Android
download_bundle = Descargar el app bundle
kibibytes = { $number } KiB
mebibytes = { $number } MiB
taken_back = Esta versión se retiró y ya no se puede instalar.
ios_needs_https = iOS solo instala desde una dirección https; este servicio no tiene ninguna.
open_on_phone = Abra esta página en su teléfono
only_these_devices = { $count ->
    [one] Se instala en { $number } dispositivo registrado
   *[other] Se instala en { $number } dispositivos registrados
}
device_ends = Los últimos caracteres de sus identificadores (UDID). Si falta el suyo, envíelo al equipo de la app.
only_from_store = Este archivo es para la App Store. Los teléfonos lo rechazan aquí: instale la app con TestFlight o desde la App Store.
any_device_of_company = Se instala en los dispositivos de la empresa que la firmó.
profile_ends = La app se abre hasta el { $date }; después necesita una versión nueva.
profile_ended = La app no se abre desde el { $date }: su perfil ha caducado. Pida una versión nueva.

## The page after a payment

paid = Gracias
paid_text = Su pago de { $total } ha llegado.
pending = Un momento
pending_text = Su pago de { $total } aún no está confirmado. Esta página se actualiza sola.
not_paid = Sin pagar
failed_text = El pago de { $total } no se ha realizado.
abandoned_text = No se han pagado { $total }.
your_order = Su pedido:
reference = Referencia { $reference }

## Signing in

needs_https = Los navegadores solo guardan una sesión con https. Asigne a SVC_DASHBOARD_URL una dirección con https.
no_administrator = Este servidor aún no tiene administrador. El enlace que crea la primera cuenta está en su registro.
has_administrator = Este servidor tiene un administrador. Inicie sesión, o cree una cuenta.
session_over = Su sesión ha terminado. Inicie sesión para continuar.
session_over_kept = Su sesión ha terminado. Lo que escribió se conserva: inicie sesión y envíelo otra vez.
signed_in_again = Ha iniciado sesión de nuevo
kept_without_secrets = Lo que escribió antes se ha conservado, menos los secretos: quizá deba escribirlos otra vez.
send_it = Enviar
leave_it = Descartarlo e ir al inicio
forgot = He olvidado mi contraseña

## A new account

new_account = Cuenta nueva
name = Nombre
name_hint = Los demás lo ven. Si falta, es la primera parte del correo.
password_hint = Al menos 8 caracteres.
make_the_account = Crear la cuenta
has_account = Ya tengo una cuenta
registration_closed = El registro está cerrado en este servicio. Su operador crea las cuentas: pídale una.
token_of_invitation = Token de la invitación
token_of_invitation_hint = Está en el correo de su invitación. Regístrese con la dirección que lo recibió.
first_administrator = Primer administrador
first_administrator_does = El primer administrador de este servidor lo ve y lo cambia todo. Este enlace crea uno, una sola vez.
become_administrator = Ser el administrador

## A forgotten password

forgotten_password = Contraseña olvidada
forgot_mail = Recibirá un correo con un enlace para elegir una contraseña nueva.
forgot_no_mail = Este servidor no envía correos. Pida aquí una contraseña nueva y pida después el enlace al operador: está en el registro.
send_mail = Enviar el correo
ask_for_password = Pedir una contraseña nueva
have_token = Tengo un token
asked_mail = Si existe una cuenta con esta dirección, un correo con un enlace está en camino.
asked_no_mail = Este servidor no envía correos. Si existe una cuenta con esta dirección, su operador encuentra el enlace en el registro.

## A new password

new_password = Contraseña nueva
new_password_ends = Esto cierra todas sus sesiones y anula sus tokens de despliegue. Los publicadores de confianza que añadió se eliminan, y los webhooks que creó se desactivan.
token_of_link = Token del enlace
set_password = Guardar la contraseña
password_set = La contraseña nueva vale desde ahora. Inicie sesión con ella.

## Otra dirección de correo

confirm_email = Confirmar su correo
confirm_email_why = La cuenta recibe esta dirección cuando usted confirma que lee su correo.
email_confirmed = La cuenta tiene su nueva dirección de correo.

## An invitation

invitation = Invitación
join = Unirse a una organización
join_first = Use la dirección que recibió la invitación. Después volverá aquí.
join_as = Una invitación vale para la dirección que la recibió. Ha iniciado sesión como:
join_now = Unirse

## What cannot be shown

not_found = No encontrado
not_allowed = No permitido
went_wrong = Algo ha fallado
not_done = No realizado
leads_nowhere = Este enlace no lleva a nada. Pida uno nuevo a quienes se lo enviaron.
go_to_start = Ir al inicio
