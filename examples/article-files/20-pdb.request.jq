# A budget that says nothing keeps one Pod. One with maxUnavailable has said what
# it wants; policy/v1 refuses both together.
if .spec.minAvailable == null and .spec.maxUnavailable == null then .spec.minAvailable = 1 else . end
