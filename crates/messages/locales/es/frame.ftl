## El marco de las páginas

menu_home = Inicio
menu_projects = Proyectos
menu_organizations = Organizaciones
menu_activity = Actividad
menu_operations = Operaciones
menu_templates = Plantillas
menu_documentation = Documentación
menu_reference = Referencia
menu_your_projects = Sus proyectos
menu_project_settings = Ajustes del proyecto
menu_server = Servidor
menu_search = Buscar
menu_open = Menú
menu_main = Menú principal
menu_sign_out = Cerrar sesión
menu_colours = Colores
colours_light = Claro
colours_system = Como el sistema
colours_dark = Oscuro
way_here = Ruta de navegación
announcements = Avisos
announcement = Aviso:
