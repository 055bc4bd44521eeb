## Der Rahmen der Seiten

menu_home = Start
menu_projects = Projekte
menu_organizations = Organisationen
menu_activity = Verlauf
menu_operations = Betrieb
menu_templates = Vorlagen
menu_documentation = Dokumentation
menu_reference = Referenz
menu_your_projects = Ihre Projekte
menu_project_settings = Einstellungen des Projekts
menu_server = Server
menu_search = Suche
menu_open = Menü
menu_main = Hauptmenü
menu_sign_out = Abmelden
menu_colours = Farben
colours_light = Hell
colours_system = Wie das System
colours_dark = Dunkel
way_here = Der Weg hierher
announcements = Bekanntmachungen
announcement = Bekanntmachung:
