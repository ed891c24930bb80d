import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

// What a session may do it may do until its end: a verb that works after its body ends with the session, since its token may have been
// revoked for that. A new route is either in its handler's hands with the end of the session, or one step that is listed here.
const short = {
  host: [
    // These end sessions, or begin one.
    ...['login', 'renewToken', 'logout', 'resetPassword', 'endSession'],
    // A row, and a word to the loop of the cluster.
    ...['deleteCluster', 'renewClusterCertificates'],
    // A row and a folder.
    'rejectArchiveUpdate',
    // A row; the host goes, or the reset begins, after the reply.
    ...['rebootEdgeHost', 'shutDownEdgeHost', 'resetEdgeHost', 'cancelHostAction'],
    // The start of a job; and one file of an account.
    ...['generateLogs', 'updateCurrentUser'],
    // A few bytes of memory.
    'createTicket',
    // A row; a file or two, by a verb that goes on by itself.
    ...['setManagementInterface', 'setHostName', 'setHostTime'],
    // A row; a job puts it in place.
    'updateConfigurations',
    // Two rows, and the start of a trial, which goes on by itself.
    ...['createUserData', 'updateUserData'],
    // Changes nothing.
    'validateProfileVariables',
  ],
  platform: [
    ...['authenticate', 'revokeTokens', 'activateUser', 'resetPassword', 'changePassword'],
    // Rows of one transaction each, and their folders.
    ...['createApiKey', 'updateApiKey', 'setApiKeyState', 'deleteApiKey'],
    ...['createVendorCloudConfig', 'deleteVendorCloudConfig', 'deleteVendorAccount'],
    ...['updateClusterHeartbeat', 'updateClusterConditions', 'updateClusterPacksStatus'],
    ...['updateEdgeHostPacksStatus', 'updateClusterKubeconfig'],
    ...['logInEdgeHost', 'updateEdgeHostHealth', 'updateEdgeHost', 'updateEdgeHostMeta', 'deleteEdgeHost'],
    ...['acceptEdgeHost', 'createEvents', 'deletePack', 'deleteClusterProfile'],
    ...['createProject', 'updateProject', 'deleteProject'],
    ...['createRegistrationToken', 'updateRegistrationToken', 'setRegistrationTokenState'],
    ...['deleteRegistrationToken', 'createUser', 'deleteUser', 'setUserRoles', 'renewActivationLink'],
  ],
} as const

// Two paths of one handler, whose caller has a registration token and no session.
const withoutSession = ['registeredgehost', 'registeredgehosts']

// Registered in a loop, so that the scan does not see their names. A change of the network is one step: a file, and a unit that goes on by itself.
const inLoops = [
  ...['bond', 'bridge', 'vlan'].flatMap((kind) => [`create${kind}`, `put${kind}`, `delete${kind}`]),
  ...['updatenetworkinterface', 'confirmnetworkchange', 'revertnetworkchange'],
]

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Whether the handler of each changing route takes the end of the session, by operation. */
function operations(isPlatform: boolean): Map<string, boolean> {
  const found = new Map<string, boolean>()
  for (const path of globSync('src/**/*.ts', { cwd: root })) {
    if (path.startsWith('src/platform') !== isPlatform) continue
    for (const route of read(path)
      .split(/\n\s*\w+\.(?=(?:get|post|put|patch|delete)\b)/)
      .slice(1)) {
      if (route.startsWith('get')) continue
      for (const [, operation = ''] of route.matchAll(/operationId: '(\w+)'/g))
        found.set(
          operation,
          /\b(sessionEnd|requestEnd|waitingEnd|examinationCallerOf|answerChange)\b/.test(route),
        )
    }
  }
  return found
}

/** The changing operations that the document of the API lists, in lower case. */
const documented = (path: string) =>
  [...read(path).matchAll(/^\| (?:POST|PUT|PATCH|DELETE) +\| \[[^\]]*\]\(#(\w+)\)/gm)].map(
    ([, operation = '']) => operation,
  )

it.each(['host', 'platform'] as const)(
  'each route of the %s that changes something ends with its session, or is listed as one step',
  (program) => {
    const found = operations(program === 'platform')
    const isShort = (operation: string) => (short[program] as readonly string[]).includes(operation)
    expect([...found].filter(([name, isEnded]) => !isEnded && !isShort(name)).map(([name]) => name)).toEqual(
      [],
    )
    // No operation stays in the list that is gone or takes the end by now.
    expect(short[program].filter((name) => found.get(name) !== false)).toEqual([])
    // The scan of the sources has seen every operation of the document.
    const seen = new Set([...found.keys()].map((name) => name.toLowerCase()))
    const all = documented(program === 'host' ? 'docs/api.md' : 'docs/platform-api.md')
    expect(all.length).toBeGreaterThan(20)
    const isKnown = (name: string) => withoutSession.includes(name) || inLoops.includes(name)
    expect(all.filter((name) => !seen.has(name) && !isKnown(name))).toEqual([])
  },
)
