import type { Option } from '../../ctl/options.ts'
import type { Program } from '../../ctl/command.ts'
import { offer, textAt } from '../../ctl/on-host.ts'

// Options of several nouns of the platform.

export const project: Option = { value: 'PROJECT', summary: 'A project, by its name or uid.' }

export const expiry: Option = {
  value: 'TIME',
  summary: 'Expiry: a date such as 2027-01-31, or a time from now such as +30d.',
}

/** Option of deletions of clusters and of hosts. */
export const force = { summary: 'Forget the cluster without its host, which keeps what it runs.' } as const

// A person picks from fewer.
const mostOfScope = 50

type Loads = () => Promise<Program>

/**
 * The names of the items in scopes: the tenant and its projects.
 * @param fields of an item, with dots; the name, and the version where there is one: `plant@1.2.0`
 */
const inScopes = (path: string, ...fields: readonly string[]): Loads =>
  offer(async () => {
    const { findReadScopes, listScopes } = await import('./find.ts')
    return async ({ client }) => {
      const scopes = await findReadScopes(client, undefined)
      const { items } = await listScopes<object>(client, scopes, { path, query: {}, limit: mostOfScope })
      return items.map(({ item }) => fields.map((field) => textAt(item, field)).join('@'))
    }
  })

const ofTenant = (kind: 'users' | 'projects' | 'apiKeys' | 'tokens'): Loads =>
  offer(async () => {
    const { path, field } = (await import('./find.ts'))[kind]
    return async ({ client }) => {
      const { items } = await client.list<object>(path, {}, mostOfScope)
      return items.map((item) => textAt(item, field))
    }
  })

/** Completions of the first argument of a command, by the word that stands for it in the help. */
export const offered = {
  user: ofTenant('users'),
  project: ofTenant('projects'),
  key: ofTenant('apiKeys'),
  token: ofTenant('tokens'),
  host: inScopes('/v1/edgehosts', 'metadata.name'),
  pack: inScopes('/v1/packs', 'metadata.name', 'spec.version'),
  profile: inScopes('/v1/clusterprofiles', 'metadata.name', 'spec.version'),
  cluster: inScopes('/v1/spectroclusters', 'metadata.name'),
  account: inScopes('/v1/cloudaccounts/vendor', 'metadata.name'),
  config: inScopes('/v1/cloudconfigs/vendorke', 'metadata.name'),
} as const satisfies Readonly<Record<string, Loads>>
