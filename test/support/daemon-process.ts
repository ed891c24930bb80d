// The daemon as a process of its own, so that a test sees whether it survives an attack: started with a state folder,
// it prints its port.
import { join } from 'node:path'
import { loadConfig, parseCommandLine } from '../../src/edgehostd/declarations.ts'
import { createDaemon } from '../../src/edgehostd/root.ts'
import { createLog } from '../../src/system/log.ts'

const [directory = ''] = process.argv.slice(2)
const { config } = await loadConfig({
  commandLine: parseCommandLine([
    `--state.directory=${directory}`,
    `--api.socket.path=${join(directory, 'daemon.sock')}`,
    '--api.address=127.0.0.1',
  ]),
  environment: {},
  defaultFile: join(directory, 'none.yaml'),
})
const lines: string[] = []
const daemon = await createDaemon({
  // Any free port.
  config: {
    ...config,
    api: { ...config.api, port: 0 },
    content: { ...config.content, registry: { ...config.content.registry, port: 0 } },
  },
  log: createLog('info', { write: (line: string) => void lines.push(line) }),
  version: '1.2.3',
  buildDate: Date.UTC(2026, 0, 1),
})
await daemon.start()
const port = /"port":(\d+)/.exec(lines.find((line) => line.includes('"msg":"listening"')) ?? '')?.[1]
process.stdout.write(`${port ?? ''}\n`)
process.stdin.once('data', () => {
  void daemon.stop().then(() => process.exit())
})
