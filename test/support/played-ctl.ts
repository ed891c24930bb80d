import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createCtl } from './ctl.ts'
import { playCluster } from './played-cluster.ts'

export type Answers = Parameters<typeof playCluster>[1]

/** edgehostctl, and the played daemons that it is run against, one at a time. */
export function createPlayedCtl() {
  const ctl = createCtl()
  let played: Awaited<ReturnType<typeof playCluster>> | undefined
  let sockets = 0

  /** Starts a daemon in the place of the one before. @returns its socket */
  async function play(answers: Answers): Promise<string> {
    await played?.stop()
    const path = join(ctl.home, `${(sockets += 1)}.sock`)
    played = await playCluster(path, answers)
    return path
  }

  /** What the last daemon was asked. */
  const asked = () => played?.asked.filter(({ url }) => !url.endsWith('/v1/ping')) ?? []

  return {
    ...{ ctl, play, asked },
    /** Runs `edgehostctl cluster …` against a daemon with these answers. */
    async run(answers: Answers, args: readonly string[], input?: string) {
      const path = await play(answers)
      const ended = await ctl.run([`--socket=${path}`, 'cluster', ...args], input)
      return { ...ended, asked: asked() }
    },
    async stop() {
      await played?.stop()
      rmSync(ctl.home, { recursive: true })
    },
  }
}
