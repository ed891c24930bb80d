/** The import law of docs/architecture.md. */
const { readdirSync } = require('node:fs')
const { join } = require('node:path')

// What every room stands on, in order; each of these may use those before it.
const ground = ['base', 'errors', 'system', 'store', 'lists']

// What the platform says on the wire to its hosts.
const platformSchemas = [
  'platform/schemas.ts',
  'platform/hosts/schemas.ts',
  'platform/events/schemas.ts',
  'platform/clusters/schemas.ts',
]

// What more a folder may use, or instead. A folder that is not named here is a room that needs the ground alone; one that
// names another stands behind it, so there is no way for a circle.
const law = {
  ...Object.fromEntries(ground.map((name, index) => [name, ground.slice(0, index)])),
  config: ['base', 'errors', 'system/regular-file.ts'],
  jobs: ['base', 'errors'],
  archive: ['base', 'errors', 'system'],
  secrets: ['base', 'errors', 'system', 'store'],
  program: ['base', 'errors', 'system', 'store', 'secrets'],
  api: ['base', 'errors', 'system', 'lists', 'store/unwritable.ts'],
  // The trail is what the stages of a request ask for.
  audit: [...ground, 'archive', 'api/audit-hook.ts'],
  certificate: [...ground, 'audit'],
  host: ground,
  // The door to the rights of root; its table is in the root.
  verbs: ['base', 'errors', 'system'],
  credentials: ground,
  outgoing: ground,
  // What it downloads is an archive, and keeps the reserve of the disk as an upload does.
  uplink: [
    ...ground,
    'archive',
    'secrets',
    'audit',
    'host',
    'outgoing',
    'upload/disk-room.ts',
    'api/json-form.ts',
    ...platformSchemas,
    // How the tar is made of which it downloads one.
    'definition/examination/protocol.ts',
  ],
  auth: [
    ...[...ground, 'secrets', 'audit', 'credentials', 'verbs'],
    ...['host/public-key.ts', 'host/ssh-keys.ts'],
  ],
  upload: [...ground, 'archive', 'api', 'audit'],
  definition: [...ground, 'archive', 'program', 'upload', 'audit', 'host'],
  content: [...ground, 'archive', 'program', 'upload', 'audit'],
  kubernetes: ground,
  cluster: [
    ...ground,
    'archive',
    'secrets',
    'audit',
    'program',
    'upload',
    'host',
    'definition',
    'content',
    'kubernetes',
  ],
  // The verb of a stop.
  power: [...ground, 'audit', 'verbs'],
  network: [...ground, 'audit', 'host', 'verbs'],
  // Time servers are placed as those of a cluster are.
  setup: [
    ...[...ground, 'audit', 'host', 'verbs'],
    ...['cluster/host/ntp-servers.ts', 'cluster/loop/step.ts', 'cluster/desired/host-settings.ts'],
  ],
  // Who asks for a trial, and by which way.
  configuration: [
    ...[...ground, 'secrets', 'audit', 'verbs', 'outgoing'],
    // Interfaces of user data, and the registry of others that it names.
    ...['network/schemas.ts', 'network/user-data.ts', 'network/trial/routes-changes.ts'],
    'content/registry/external-registry.ts',
    // The restart for a link to a platform.
    'power/verbs.ts',
  ],
  images: [...ground, 'content/format', 'content/reads/stored-images.ts'],
  inventory: [...ground, 'host', 'program'],
  diagnosis: [
    ...[...ground, 'verbs', 'host', 'outgoing'],
    ...['uplink/probe.ts', 'uplink/cause.ts', 'uplink/client.ts', 'cluster/engine/paths.ts'],
  ],
  backup: [...ground, 'secrets/secret-file.ts'],
  service: [...ground, 'certificate'],
  platform: [
    ...[...ground, 'secrets', 'audit', 'credentials', 'outgoing', 'upload', 'program/run-worker.ts'],
    // What users send is read by examine.cjs alone: the platform knows what that is asked, and what it answers.
    ...['archive/limits.ts', 'archive/refusal.ts', 'archive/codes.ts'],
    ...['definition/examination/protocol.ts', 'definition/codes.ts'],
    ...['definition/read/choose-version.ts', 'definition/definition.ts'],
    'definition/rules/variables.ts',
    // What a host refuses of a configuration; pure.
    ...['cluster/desired/configuration.ts', 'cluster/schemas.ts'],
    ...['cluster/host/endpoint.ts', 'cluster/desired/version.ts'],
    ...['cluster/host/kubernetes-settings.ts', 'cluster/host/judge-host.ts'],
    'cluster/engine/pack-config.ts',
  ],
  support: [
    ...[...ground, 'archive', 'config', 'program', 'secrets/secret-file.ts'],
    // What it reads of a cluster, and the values that it masks there.
    ...['cluster/engine/paths.ts', 'cluster/sensitive-values.ts', 'definition/slots/secrets.ts'],
  ],
  // A program of the command line: the face of ctl, the archives of definition, the format of bundles.
  authoring: [
    ...['base', 'errors', 'system', 'config', 'program', 'archive', 'definition', 'content/format', 'ctl'],
    // What a cluster needs of the content, found as a host finds it.
    ...['cluster/needs', 'cluster/prepare/prepare-definition.ts', 'cluster/prepare/protocol.ts'],
    ...['cluster/desired/configuration.ts', 'cluster/desired/prepared.ts', 'cluster/desired/version.ts'],
    'cluster/schemas.ts',
  ],
  // Another one: it writes the configuration of the daemon, and checks with the calls of uplink.
  connect: [
    ...['base', 'errors', 'system', 'config', 'program', 'outgoing', 'uplink', 'ctl'],
    ...['edgehostctl/host-sessions.ts', 'host/schemas.ts', ...platformSchemas],
    // The way that user data and `configuration set` have given the host.
    ...['configuration/way-in-place.ts', 'configuration/placement.ts'],
  ],
}
const names = Object.keys(law)
for (const [index, [name, mayUse]] of Object.entries(law).entries())
  for (const other of mayUse)
    if (names.indexOf(other) >= index && !['ctl'].includes(other))
      throw new Error(`src/${name} may not use src/${other}, which stands behind it`)

// The programs, the pages of a browser, and what those of one kind share.
const programs = ['console', 'ctl', 'edgehostctl', 'edgeplatformctl', 'root', 'edgehostd', 'edgeplatformd']
const folders = readdirSync(join(__dirname, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !programs.includes(entry.name))
  .map(({ name }) => name)
// The contract of rooms, and what a section of the configuration is written with, are for all.
const forAll = ['root/room.ts', 'config/schema-parts.ts']
const mayUseOf = (folder) => [folder, ...(law[folder] ?? ground), ...forAll]

// A room is all of its files.
const pathOf = (name) => (name.endsWith('.ts') ? name.replace('.', '\\.') + '$' : name + '/')
const pathsOf = (names) => `^src/(${names.map(pathOf).join('|')})`

// A program that needs the sum of the declarations is a root too.
const rootProgram = '^src/(support|connect)/main\\.ts$'

// What answers requests beside the routes of the service API: an app of its own, and the stages of a request to the platform.
const apps = ['content/registry', 'platform/requests']

// The files of a role in a room, or in a part of it: `routes.ts`, `routes-NAME.ts` and those in a folder `routes`.
const ofRole = (role) => `(|.*/)${role}(-[a-z-]*\\.ts$|\\.ts$|/)`

const roomLaw = folders.map((folder) => ({
  name: `room-${folder}`,
  comment: `src/${folder} may use only: ${mayUseOf(folder).join(', ')} (its routes also api)`,
  severity: 'error',
  from: {
    path: `^src/${folder}/`,
    pathNot: [`^src/${folder}/${ofRole('(routes|commands)')}`, `^src/(${apps.join('|')})/`, rootProgram],
  },
  to: { path: '^src/', pathNot: pathsOf(mayUseOf(folder)) },
}))

const routesLaw = folders.map((folder) => ({
  name: `routes-${folder}`,
  comment: `the routes of src/${folder}, or an app of its own, may use what its room may, and api`,
  severity: 'error',
  from: {
    path: [
      `^src/${folder}/${ofRole('routes')}`,
      ...apps.filter((app) => app.startsWith(`${folder}/`)).map((app) => `^src/${app}/`),
    ],
  },
  to: { path: '^src/', pathNot: pathsOf([...mayUseOf(folder), 'api']) },
}))

// The client uses what the rooms say of the wire, and rules of theirs that read and write nothing.
const pureForClients = [
  'lists/page',
  'content/registry/containerd-hosts',
  'kubernetes/names',
  // Which definition comes next.
  'definition/slots/slot-names',
  // Where the kubectl of a cluster is on its host.
  'cluster/engine/paths',
]
// What every program of one task does alike, client or not.
const forPrograms = [
  'system/regular-file',
  'program/remove-on-signal',
  'system/place-file',
  // The kubectl of another machine.
  'system/attached',
  'program/standard-output',
  'program/status-line',
  // Bundles are read as the host reads them.
  'archive/compression',
  'archive/limits',
  // The folder of a pack is sent as a tar.
  'archive/tar-member',
  'archive/ustar',
]
const forClients = [...pureForClients, ...forPrograms]

const ofClients = `ctl/|base/|errors/|([^/]+|(cluster|platform)/[^/]+)/schemas\\.ts$|(${forClients.join('|')})\\.ts$`

const clientLaw = [
  {
    name: 'ctl-is-a-client',
    comment: `src/ctl may use the schemas.ts of any room, base, errors, and: ${forClients.join(', ')}`,
    severity: 'error',
    from: { path: '^src/ctl/' },
    to: { path: '^src/', pathNot: `^src/(${ofClients})` },
  },
  {
    name: 'programs-list-nouns',
    comment: 'src/edgehostctl and src/edgeplatformctl may use what src/ctl may, and the commands of any room',
    severity: 'error',
    from: { path: '^src/(edgehostctl|edgeplatformctl)/' },
    to: { path: '^src/', pathNot: `^src/($1/|${ofRole('commands')}|${ofClients})` },
  },
  {
    name: 'commands-are-of-the-client',
    comment: 'the commands of a room may use ctl and what that may, and of the room only its schemas.ts',
    severity: 'error',
    from: { path: `^src/([^/]+)/${ofRole('commands')}`, pathNot: '^src/(platform|cluster)/' },
    to: { path: '^src/', pathNot: `^src/($1/${ofRole('commands')}|${ofClients})` },
  },
  {
    name: 'commands-of-the-cluster',
    comment:
      'the commands of the cluster may use what those of a room may, and those of the definitions, which a cluster is made of',
    severity: 'error',
    from: { path: `^src/cluster/${ofRole('commands')}` },
    to: { path: '^src/', pathNot: `^src/((cluster|definition)/${ofRole('commands')}|${ofClients})` },
  },
  {
    name: 'commands-of-the-platform',
    comment:
      'the commands of the platform may use what those of a room may, and those of the audit trail, which both programs have',
    severity: 'error',
    from: { path: `^src/platform/${ofRole('commands')}` },
    to: { path: '^src/', pathNot: `^src/((platform|audit)/${ofRole('commands')}|${ofClients})` },
  },
  {
    name: 'base-is-pure',
    comment: 'no input or output in src/base, and in what src/ctl may use of other rooms',
    severity: 'error',
    // Of node:net addresses use what looks at text alone.
    from: {
      path: `^src/(base/|(${pureForClients.join('|')})\\.ts$)`,
      pathNot: '^src/base/(address|subnet)\\.ts$',
    },
    to: { path: '(^|node:)(fs|net|tls|http|https|dgram|child_process|worker_threads|sqlite|os)(/|$)' },
  },
]

const browserLaw = [
  {
    name: 'pages-know-schemas',
    comment: 'the pages of a browser may use themselves, and of every room the types of its schemas.ts',
    severity: 'error',
    from: { path: '^src/console/' },
    to: { path: '^src/', pathNot: ['^src/console/', '/schemas\\.ts$'] },
  },
  {
    name: 'pages-know-types-alone',
    comment: 'what the daemons are made of does not run in a browser',
    severity: 'error',
    from: { path: '^src/console/' },
    to: { path: '^src/', pathNot: '^src/console/', dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'pages-are-apart',
    comment: 'what the pages of both programs share knows neither, and each knows only its own',
    severity: 'error',
    from: { path: '^src/console/([^/]+)/' },
    to: { path: '^src/console/', pathNot: '^src/console/($1|shared)/' },
  },
  {
    name: 'no-daemon-has-pages',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/console/' },
    to: { path: '^src/console/' },
  },
]

module.exports = {
  forbidden: [
    ...roomLaw,
    ...routesLaw,
    ...clientLaw,
    ...browserLaw,
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'only-system-starts-processes',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(system|program)/' },
      to: { path: '(^|node_modules/)(execa|node:child_process|child_process)(/|$)' },
    },
    {
      name: 'only-inventory-uses-systeminformation',
      comment: 'it is slow and has no limits: only the program that reads the inventory loads it',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/inventory/program/' },
      to: { path: 'node_modules/systeminformation/' },
    },
    {
      name: 'only-metrics-exposes',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/metrics/' },
      to: { path: 'node_modules/@prometheus-io/' },
    },
    {
      name: 'only-jobs-schedules',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/jobs/' },
      to: { path: 'node_modules/node-cron/' },
    },
    {
      name: 'no-room-imports-the-root',
      severity: 'error',
      from: { path: '^src/', pathNot: [rootProgram, '^src/(root|edgehostd|edgeplatformd)/'] },
      to: { path: '^src/(root|edgehostd|edgeplatformd)/', pathNot: '^src/root/room\\.ts$' },
    },
    {
      name: 'programs-are-apart',
      comment: 'what both daemons are made of is in src/root',
      severity: 'error',
      from: { path: '^src/(root|edgehostd|edgeplatformd)/' },
      to: { path: '^src/(edgehostd|edgeplatformd)/', pathNot: '^src/$1/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
}
