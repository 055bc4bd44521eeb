## Le cadre des pages

menu_home = Accueil
menu_projects = Projets
menu_organizations = Organisations
menu_activity = Activité
menu_operations = Exploitation
menu_templates = Modèles
menu_documentation = Documentation
menu_reference = Référence
menu_your_projects = Vos projets
menu_project_settings = Réglages du projet
menu_server = Serveur
menu_search = Rechercher
menu_open = Menu
menu_main = Menu principal
menu_sign_out = Se déconnecter
menu_colours = Couleurs
colours_light = Clair
colours_system = Comme le système
colours_dark = Sombre
way_here = Fil d’Ariane
announcements = Annonces
announcement = Annonce :
