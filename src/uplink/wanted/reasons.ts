/** What the condition `Wanted` says of what the platform wants. */
export const wantedReasons = [
  ...(['Applied', 'Downloading', 'Applying', 'DownloadFailed', 'SumWrong', 'Refused'] as const),
  ...(['ContentMissing', 'NewerOnHost', 'DeletedOnHost', 'ClusterExists', 'Deleting', 'Deleted'] as const),
] as const
