package cli

import "testing"

func TestSuggestedCommands(t *testing.T) {
	for _, c := range []struct{ name, store, tenant, env, want string }{
		{"the default store goes without saying", defaultStore, defaultTenant, "", "mine why abc"},
		{"another store is named", "jobs here", defaultTenant, "", "mine why abc --store 'jobs here'"},
		{"but not where the shell says so already", "/srv/jobs", defaultTenant, "/srv/jobs", "mine why abc"},
		{"another tenant is named", defaultStore, "legal", "", "mine why abc --tenant legal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(storeVar, c.env)
			t.Setenv(tenantVar, "")
			a := &app{grammar: &grammar{Store: c.store, Tenant: c.tenant}, program: Program{Name: "mine"}}
			if got := a.command("why", "abc"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
