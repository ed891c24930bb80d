/**
 * The import law of docs/architecture.md, room by room. A room that is missing here may be used by nobody.
 */
const rooms = {
  errors: [],
  system: ['errors'],
  store: ['errors'],
  config: ['errors'],
  lists: ['errors'],
  host: ['errors', 'system', 'store', 'lists'],
  audit: ['errors', 'system', 'store', 'lists'],
  auth: ['errors', 'system', 'store', 'lists', 'audit'],
  jobs: ['errors'],
  metrics: ['errors', 'system'],
  api: ['errors', 'system', 'lists'],
}

const roomLaw = Object.entries(rooms).map(([room, mayUse]) => ({
  name: `room-${room}`,
  comment: `src/${room} may use only: ${[room, ...mayUse].join(', ')} (its routes.ts also api)`,
  severity: 'error',
  from: { path: `^src/${room}/`, pathNot: `^src/${room}/routes\\.ts$` },
  to: { path: '^src/', pathNot: `^src/(${[room, ...mayUse].join('|')})/` },
}))

const routesLaw = Object.keys(rooms).map((room) => ({
  name: `routes-${room}`,
  comment: `src/${room}/routes.ts may use its own room, errors, lists and api`,
  severity: 'error',
  from: { path: `^src/${room}/routes\\.ts$` },
  to: { path: '^src/', pathNot: `^src/(${room}|api|errors|lists)/` },
}))

module.exports = {
  forbidden: [
    ...roomLaw,
    ...routesLaw,
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
      to: { path: '^src/(main|daemon)\\.ts$' },
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
