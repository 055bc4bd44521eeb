## The frame of the pages

menu_home = Home
menu_projects = Projects
menu_organizations = Organizations
menu_activity = Activity
menu_operations = Operations
menu_templates = Templates
menu_documentation = Documentation
menu_reference = Reference
menu_your_projects = Your projects
menu_project_settings = Project settings
menu_server = Server
menu_search = Search
menu_open = Menu
menu_main = Main
menu_sign_out = Sign out
menu_colours = Colours
colours_light = Light
colours_system = As the system
colours_dark = Dark
way_here = Breadcrumb
announcements = Announcements
announcement = Announcement:
