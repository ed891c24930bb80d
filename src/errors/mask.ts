/** Stands in the place of a secret, wherever one would be shown. It has no `$`, so it can replace matches as it is. */
export const masked = '********'
