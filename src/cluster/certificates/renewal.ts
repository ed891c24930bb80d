/** A renewal of the certificates that an administrator has asked for. */
export interface Renewal {
  readonly uid: string
  readonly by: string
  /** Milliseconds since 1970, as all times. */
  readonly askedAt: number
  /** Null while it is under way. */
  readonly endedAt: number | null
}

export const isUnderWay = (renewal: Renewal | null): renewal is Renewal & { endedAt: null } =>
  renewal !== null && renewal.endedAt === null
