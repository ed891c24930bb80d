import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import type { Program } from '../../ctl/command.ts'
import { download } from '../../ctl/download.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import { runOnHost } from '../../ctl/run-on-host.ts'
import { chooseTarget } from '../../ctl/target.ts'
import type { LogsStatus } from '../../diagnosis/schemas.ts'

/** On this host it becomes support.cjs, which starts processes and reads files; of another one it is generated there. */
export const collectSupport: Program<'file'> = async (line, table) => {
  if (chooseTarget(line.options, process.env, () => '').kind === 'host')
    return runOnHost(line, downloadSupport, table, process.env)
  const { path: socket } = requireLocalRoot(line, {
    does: 'collects the data of',
    reason: 'only root may read the journal and the state of the daemon',
  })
  const { file, output } = line.options
  if (file === '-' && isatty(1))
    throw new Failure('usage', 'standard output is a terminal; redirect it, or name a file with --file')
  const args = Object.entries({ socket, file, output }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  )
  become('support.cjs', args)
}

const pauseMs = 1_000

async function downloadSupport(context: Context<'file'>): Promise<undefined> {
  const { client, line, output, target } = context
  const name = target.kind === 'host' ? target.host.replace(/[^\w.-]/g, '-') : 'host'
  const day = new Date().toISOString().slice(0, 10)
  const file = line.options.file ?? `edgehostd-support-${name}-${day}.tar`
  if (file !== '-' && !file.endsWith('.tar'))
    throw new Failure('usage', 'the archive of another host is a .tar; give it such a name with --file')
  await client.change('POST', `${hostPath}/generate-logs`)
  output.note('The host collects its data, which takes up to some minutes.')
  for (;;) {
    const { status, msg } = await client.get<LogsStatus>(`${hostPath}/generate-logs-status`, [
      'status',
      'msg',
    ])
    if (status === 'Completed') break
    if (status !== 'InProgress') throw new Failure('failed', oneLine(msg))
    await sleep(pauseMs)
  }
  await download(context, {
    path: `${hostPath}/download-logs`,
    file,
    what: 'the archive',
    type: 'application/x-tar',
  })
  if (file !== '-')
    output.note(`The archive is in ${oneLine(file)}; its secrets are masked. Check it before you pass it on.`)
  return undefined
}
