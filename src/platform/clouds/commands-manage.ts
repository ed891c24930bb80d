import { printable } from '../../base/printable.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parseLimit, filterOf, noteRest } from '../../ctl/list.ts'
import { readBody } from '../../ctl/request-body.ts'
import { parseBody } from '../../ctl/reply.ts'
import { renderTable, type Column, moment, oneLine } from '../../ctl/layout.ts'
import type { VendorAccount, VendorCloudConfig, Machine } from './schemas.ts'
import {
  findUid,
  projects,
  findItem,
  findScopes,
  queryOf,
  showScopes,
  type Scope,
  type ScopeRow,
} from '../commands/find.ts'

const accountKind = {
  noun: 'cloud account',
  list: 'cloudaccount list',
  path: '/v1/cloudaccounts/vendor',
}
const configKind = {
  noun: 'cloud configuration',
  list: 'cloudconfig list',
  path: '/v1/cloudconfigs/vendorke',
}

const accountLayout: readonly Column<ScopeRow<VendorAccount>>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'ID', read: ({ item }) => item.spec.secretId, isFlexible: true },
  { title: 'CREATED', read: ({ item }) => moment(item.metadata.creationTimestamp), isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

export const listAccounts = showScopes<VendorAccount>(accountKind.path, accountLayout)

type CredentialContext = Context<'project' | 'id' | 'secret-file'>

/** The id and the secret of the options. @throws Failure usage, without the secret in it */
function credentialsOf({ line: { options } }: CredentialContext) {
  const { id, 'secret-file': file } = options
  if (id === undefined || file === undefined) throw new Failure('usage', 'name both --id and --secret-file')
  const secretKey = readBody(file, '--secret-file').toString().trim()
  if (secretKey === '') throw new Failure('usage', '--secret-file: the file is empty')
  return { secretId: id, secretKey }
}

/** Scope of a new resource: the project of `--project`, or the tenant. */
async function scopeOf({ client, line }: Context<'project'>): Promise<Scope> {
  const { project } = line.options
  return project === undefined
    ? { uid: '', name: '' }
    : { uid: await findUid(client, projects, project), name: project }
}
const inScope = (path: string, scope: Scope) => {
  const query = new URLSearchParams(queryOf(scope)).toString()
  return query === '' ? path : `${path}?${query}`
}

export async function validateAccount(context: CredentialContext): Promise<undefined> {
  const credentials = credentialsOf(context)
  const path = inScope('/v1/clouds/vendor/account/validate', await scopeOf(context))
  await context.client.change('POST', path, credentials)
  context.output.note('The cloud accepts the credentials.')
  return undefined
}

export async function createAccount(context: CredentialContext): Promise<undefined> {
  const [name = ''] = context.line.arguments
  const body = { metadata: { name }, spec: credentialsOf(context) }
  return make(context, accountKind.path, body)
}

async function make(context: Context<'project'>, path: string, body: object): Promise<undefined> {
  const reply = await context.client.change('POST', inScope(path, await scopeOf(context)), body)
  const made = parseBody<{ uid: string }>(reply, ['uid'])
  await context.output.show(made, () => `${oneLine(made.uid)}\n`)
  return undefined
}

/** A command that deletes the item of its first argument, after a question. */
const deletionOf =
  (kind: typeof accountKind, what: string) =>
  async ({ client, line, output, terminal }: Context<'project' | 'yes'>): Promise<undefined> => {
    const [word = ''] = line.arguments
    const { item, pathOf } = await findItem<VendorAccount | VendorCloudConfig>(
      ...([client, kind, word, await findScopes(client, line.options.project)] as const),
    )
    const name = oneLine(item.metadata.name)
    if (line.options.yes === undefined) confirmDeletion(terminal, `The ${what} ${name} will go.`)
    await client.change('DELETE', pathOf())
    output.note(`The ${what} ${name} is deleted.`)
    return undefined
  }

export const deleteAccount = deletionOf(accountKind, 'cloud account')
export const deleteConfig = deletionOf(configKind, 'cloud configuration')

const configLayout: readonly Column<ScopeRow<VendorCloudConfig>>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'ACCOUNT', read: ({ item }) => item.spec.cloudAccountRef.name, isFlexible: true },
  {
    title: 'POOLS',
    read: ({ item }) => item.spec.machinePoolConfig.map(({ name }) => name).join(', '),
    isFlexible: true,
  },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

export const listConfigs = showScopes<VendorCloudConfig>(configKind.path, configLayout)

export async function createConfig(context: Context<'project' | 'account' | 'pool'>): Promise<undefined> {
  const { client, line } = context
  const [name = ''] = line.arguments
  const { account, project } = line.options
  const pools = line.lists?.pool ?? []
  if (account === undefined || pools.length === 0)
    throw new Failure('usage', 'name an --account, and one --pool or more')
  const machinePoolConfig = pools.map(poolOf)
  // An account of the tenant serves each project.
  const own = project === undefined ? [] : await findScopes(client, project)
  const { item } = await findItem<VendorAccount>(client, accountKind, account, [
    ...own,
    ...[{ uid: '', name: '' }],
  ])
  const spec = { cloudAccountRef: { uid: item.metadata.uid }, machinePoolConfig }
  return make(context, configKind.path, { metadata: { name }, spec })
}

function poolOf(text: string) {
  const at = text.indexOf('=')
  const tags = text.slice(at + 1).split(',')
  if (at < 1 || tags.includes(''))
    throw new Failure('usage', `--pool must be NAME=TAG,…; it is ${printable(text) || 'empty'}`)
  return { name: text.slice(0, at), tags }
}

const machineLayout: readonly Column<Machine>[] = [
  { title: 'NAME', read: ({ metadata }) => metadata.name, isFlexible: true },
  { title: 'STATE', read: ({ status }) => stateOf(status) },
  { title: 'TYPE', read: ({ spec }) => spec.instanceType, isFlexible: true },
  { title: 'ADDRESS', read: ({ spec }) => spec.nics[0]?.privateIPs[0], isFlexible: true },
  { title: 'ZONE', read: ({ spec }) => spec.zoneId, isFlexible: true },
  { title: 'CONDITION', read: ({ status }) => status.health.conditions.at(-1)?.message, isFlexible: true },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]
const stateOf = ({ instanceState, maintenanceStatus }: Machine['status']) =>
  maintenanceStatus ? `${instanceState} (${maintenanceStatus.action})` : instanceState

export async function listMachines({
  client,
  line,
  output,
}: Context<'project' | 'limit' | 'filter'>): Promise<undefined> {
  const [word = '', pool = ''] = line.arguments
  const limit = parseLimit(line, 0)
  const scopes = await findScopes(client, line.options.project)
  const { scope, item } = await findItem<VendorCloudConfig>(client, configKind, word, scopes)
  const path = `${configKind.path}/${item.metadata.uid}/machinePools/${encodeURIComponent(pool)}/machines`
  const found = await client.list<Machine>(path, { ...filterOf(line), ...queryOf(scope) }, limit)
  await output.show(found, ({ columns }) => renderTable(found.items, machineLayout, columns))
  if (found.items.length < found.listmeta.count) noteRest(output, found.items.length, found.listmeta.count)
  return undefined
}
