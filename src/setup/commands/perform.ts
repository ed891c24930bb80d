import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { oneLine, renderFacts } from '../../ctl/layout.ts'
import type { HostName, HostTime } from '../schemas.ts'

const namePath = `${hostPath}/hostname`
const timePath = `${hostPath}/time`

/** `edgehostctl host hostname [NAME]`. */
export async function hostName({ client, line, output }: Context): Promise<undefined> {
  const [name] = line.arguments
  if (name !== undefined) await client.change('PUT', namePath, { hostName: name })
  const found = await client.get<HostName>(namePath, ['hostName'])
  await output.show(found, () => `${oneLine(found.hostName)}\n`)
  return undefined
}

/** `edgehostctl host time [--server SERVER...]`. */
export async function hostTime({ client, line, output }: Context): Promise<undefined> {
  const servers = line.lists?.server
  if (servers !== undefined)
    await client.change('PUT', timePath, {
      ntpServers: servers.length === 1 && servers[0] === 'none' ? [] : servers,
    })
  const found = await client.get<HostTime>(timePath, ['ntpServers'])
  await output.show(found, (paper) =>
    renderFacts(
      [
        { label: 'Set here', lines: found.ntpServers.length === 0 ? ['none'] : found.ntpServers },
        ...(found.service === undefined ? [] : [{ label: 'Service', lines: [found.service] }]),
        ...(found.problem === undefined
          ? []
          : [{ label: 'Problem', lines: [found.problem], mood: 'warning' as const }]),
      ],
      paper,
    ),
  )
  return undefined
}
