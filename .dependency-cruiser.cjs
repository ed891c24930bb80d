/**
 * The import law of docs/architecture.md, room by room. A room that is missing here may be used by nobody.
 */
const rooms = {
  errors: [],
  system: ['errors'],
  store: ['errors'],
  config: ['errors', 'system/regular-file.ts'],
  lists: ['errors'],
  host: ['errors', 'system', 'store', 'lists'],
  audit: ['errors', 'system', 'store', 'lists'],
  auth: ['errors', 'system', 'store', 'lists', 'audit'],
  content: ['errors', 'system', 'store', 'audit'],
  jobs: ['errors'],
  metrics: ['errors', 'system'],
  support: ['errors', 'system', 'store', 'config'],
  cluster: ['errors', 'system', 'store', 'lists', 'audit', 'host', 'content'],
  // A program of the command line: the face of ctl, the archives of cluster.
  authoring: ['errors', 'config', 'system', 'cluster', 'ctl'],
  api: ['errors', 'system', 'lists'],
}

// A room is all of its files.
const pathOf = (name) => (name.endsWith('.ts') ? name.replace('.', '\\.') + '$' : name + '/')

const roomLaw = Object.entries(rooms).map(([room, mayUse]) => ({
  name: `room-${room}`,
  comment: `src/${room} may use only: ${[room, ...mayUse].join(', ')} (its routes.ts also api)`,
  severity: 'error',
  from: { path: `^src/${room}/`, pathNot: `^src/${room}/routes\\.ts$` },
  to: { path: '^src/', pathNot: `^src/(${[room, ...mayUse].map(pathOf).join('|')})` },
}))

const routesLaw = Object.keys(rooms).map((room) => ({
  name: `routes-${room}`,
  comment: `src/${room}/routes.ts may use its own room, errors, lists and api`,
  severity: 'error',
  from: { path: `^src/${room}/routes\\.ts$` },
  to: { path: '^src/', pathNot: `^src/(${room}|api|errors|lists)/` },
}))

// The client uses what the rooms say of the wire, and rules of theirs that read and write nothing.
const pureForClients = ['lists/page', 'system/growing-buffer']
// What every program of one task does alike, client or not.
const forPrograms = [
  'system/regular-file',
  'system/remove-on-signal',
  'system/place-file',
  'system/standard-output',
]
const forClients = [...pureForClients, ...forPrograms]

const clientLaw = [
  {
    name: 'ctl-is-a-client',
    comment: `src/ctl may use the schemas.ts of any room, errors, and: ${forClients.join(', ')}`,
    severity: 'error',
    from: { path: '^src/ctl/' },
    to: {
      path: '^src/',
      pathNot: `^src/(ctl/|errors/|[^/]+/schemas\\.ts$|(${forClients.join('|')})\\.ts$)`,
    },
  },
  {
    name: 'what-clients-use-is-pure',
    comment: 'no input or output in what src/ctl may use of other rooms',
    severity: 'error',
    from: { path: `^src/(${pureForClients.join('|')})\\.ts$` },
    to: { path: '(^|node:)(fs|net|tls|http|https|dgram|child_process|worker_threads|sqlite|os)(/|$)' },
  },
]

module.exports = {
  forbidden: [
    ...roomLaw,
    ...routesLaw,
    ...clientLaw,
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'only-system-starts-processes',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/system/' },
      to: { path: '(^|node_modules/)(execa|node:child_process|child_process)(/|$)' },
    },
    {
      name: 'only-host-uses-systeminformation',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/host/' },
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
      name: 'nobody-imports-the-root',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(main|daemon)\\.ts$' },
      to: { path: '^src/(main|daemon|edge|state|named-by-config)\\.ts$' },
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
