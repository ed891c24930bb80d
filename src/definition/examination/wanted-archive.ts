import { memberHeader } from '../../archive/tar-member.ts'
import { tarEnd, tarPadding } from '../../archive/ustar.ts'

/** Name of the definition in what a host downloads, and of its file on the disk of the platform. */
export const wantedDefinition = 'definition.tar.zst'

/** Name of the description of the cluster in what a host downloads. */
export const wantedCluster = 'cluster.json'

/** Bytes of the description at most: the platform makes no larger one, and no host takes it. */
export const largestDescription = 6 * 1_048_576

/** The bytes around the definition in a tar for a host. */
export interface WantedFrame {
  readonly before: Buffer
  readonly after: Buffer
}

/**
 * What a host downloads is a tar of two members: the description of the cluster, which has secrets, and the definition, a file. It is never
 * on the disk as a whole, so this gives what stands before and after the file. Of a cluster that is deleted there is no definition.
 * @param head the description of the cluster, JSON
 * @param definitionBytes size of the definition; `undefined` where there is none
 */
export function wantedFrame(head: Buffer, definitionBytes: number | undefined): WantedFrame {
  const description = [memberHeader(wantedCluster, head.length), head, tarPadding(head.length)]
  if (definitionBytes === undefined)
    return { before: Buffer.concat([...description, tarEnd()]), after: Buffer.alloc(0) }
  return {
    before: Buffer.concat([...description, memberHeader(wantedDefinition, definitionBytes)]),
    after: Buffer.concat([tarPadding(definitionBytes), tarEnd()]),
  }
}
